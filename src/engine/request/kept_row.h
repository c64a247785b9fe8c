#pragma once
// A row of logits whose token waits for its mask. Its sequence pauses meanwhile.

#include <vector>

#include "base/ids.h"

namespace candor::engine {

struct KeptRow {
  std::vector<float> logits{};  // [V]
  TokenId draft = kNoToken;     // what was drafted for the token
};

}  // namespace candor::engine
