#pragma once
// Stages of sampling that lower the logits of tokens which the text has already: repetition, frequency and
// presence penalties, and DRY (repeated sequences). Pure functions of the tokens so far.

#include <cstdint>
#include <vector>

#include "sample/candidates.h"
#include "sample/history.h"

namespace candor::sample {

// Repetition (Keskar et al., "CTRL", 2019) counts prompt and output: a positive logit is divided, a negative
// multiplied. Frequency and presence (OpenAI's) count the output: logit - count * frequency - presence.
struct PenaltyParams {
  double repetition = 1.0;        // 1 = off
  double frequency = 0.0;         // 0 = off
  double presence = 0.0;          // 0 = off
  int64_t window = kWholeWindow;  // each looks at the newest so many tokens of what it counts

  bool is_on() const { return repetition != 1.0 || frequency != 0.0 || presence != 0.0; }
};

// Row: Candidates, whose settle() is left to the caller, or EditList.
template <class Row>
void apply_penalties(Row& row, const History& history, const PenaltyParams& params, TokenCounts& counts);

// "Don't repeat yourself" (p-e-w, 2024): a token that would go on with a repetition of n tokens that stands in the
// history, n >= allowed_length, loses multiplier * base^(n - allowed_length). A repetition does not reach over a
// breaker, and breakers themselves are not lowered.
struct DryParams {
  double multiplier = 0.0;  // 0 = off
  double base = 1.75;
  int64_t allowed_length = 2;
  int64_t window = kWholeWindow;
  std::vector<TokenId> breakers{};  // ascending

  bool is_on() const { return multiplier != 0.0; }
};

// Reused from call to call.
struct DryScratch {
  std::vector<int32_t> lengths{};  // [window]
  std::vector<int32_t> longest{};  // [V]
};

template <class Row>
void apply_dry(Row& row, const History& history, const DryParams& params, DryScratch& scratch);

}  // namespace candor::sample
