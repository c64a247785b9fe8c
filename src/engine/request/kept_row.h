#pragma once
// A row of logits whose token waits for its mask. Its sequence holds meanwhile.

#include <vector>

#include "base/ids.h"

namespace candor::engine {

struct KeptRow {
  std::vector<float> logits{};  // [V]
  TokenId guess = kNoToken;     // what speculation had guessed for the token
};

}  // namespace candor::engine
