#pragma once
// An architecture as lines of text, "name: value" each, for `candor show`, for messages, and for the model's
// fingerprint: two specs have the same text exactly when they are equal (frequency factors apart, which are counted).
// Blocks that equal their predecessor are folded into one range.

#include <string>

#include "model/arch_spec.h"

namespace candor::model {

std::string to_text(const ArchSpec& spec);

}  // namespace candor::model
