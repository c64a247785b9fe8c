#pragma once
// A trace as a person reads it: the steps from text to text, with shapes, time and bytes, and how each token was
// chosen.

#include <string>

#include "apps/explain/trace.h"

namespace candor::apps {

std::string explain_page(const Engine& engine, const Trace& trace);
// The same, whole.
std::string explain_json(const Engine& engine, const Trace& trace);

}  // namespace candor::apps
