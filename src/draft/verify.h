#pragma once
// Verification by sampling (docs/numerics.md, "Sampling"): at each position the target's own token is chosen with that
// position's random words, and a draft token is accepted exactly where it equals it. The output is bit-equal to plain
// decoding, whatever was drafted.

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace candor::draft {

// Calls pick(i) for the token at position i behind the known text, i = 0, 1, ...; goes on only while the token equals
// draft i. pick gives the token, and kNoToken where the output ends with it or it can not be chosen yet. Returns how
// many drafts were accepted.
template <class Pick>
int32_t verify(std::span<const TokenId> drafts, Pick&& pick) {
  int32_t n_accepted = 0;
  for (const TokenId draft : drafts) {
    if (pick(n_accepted) != draft) return n_accepted;
    ++n_accepted;
  }
  pick(n_accepted);
  return n_accepted;
}

}  // namespace candor::draft
