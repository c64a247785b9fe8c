#pragma once
// Draft tokens from the text itself: what followed the last earlier occurrence of its newest tokens ("prompt lookup
// decoding", Saxena, 2023). A pure function.

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace candor::draft {

struct NgramOptions {
  int32_t longest = 5;  // tokens that must agree, longest first
  int32_t shortest = 2;
  int32_t lookback = 16384;  // tokens searched
};

// Appends up to `most` drafts of what follows `text`; none where nothing agrees. The longest agreement wins, then the
// newest.
void draft_by_ngram(std::span<const TokenId> text, int32_t most, const NgramOptions& options,
                    std::vector<TokenId>& drafts);

}  // namespace candor::draft
