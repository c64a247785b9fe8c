#pragma once
// Verification by sampling (docs/numerics.md, "Sampling"): at each position the target's own token is chosen with that
// position's random words, and a guess holds exactly where it equals it. The output is bit-equal to plain decoding,
// whatever was guessed.

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace candor::draft {

// Calls pick(i) for the token at position i behind the known text, i = 0, 1, ...; goes on only while the token equals
// guess i. pick gives the token, and kNoToken where the output ends with it or it can not be chosen yet. Returns how
// many guesses held.
template <class Pick>
int32_t verify(std::span<const TokenId> guesses, Pick&& pick) {
  int32_t n_right = 0;
  for (const TokenId guess : guesses) {
    if (pick(n_right) != guess) return n_right;
    ++n_right;
  }
  pick(n_right);
  return n_right;
}

}  // namespace candor::draft
