#pragma once
// A row of logits that is kept because the mask of its token is not ready (step/late_masks.h); its sequence pauses.

#include <vector>

#include "base/ids.h"

namespace candor::engine {

struct KeptRow {
  std::vector<float> logits{};      // [V]
  TokenId draft = kNoToken;         // what was drafted for the token
  std::vector<double> attention{};  // PickInput::attention
};

}  // namespace candor::engine
