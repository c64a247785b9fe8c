#pragma once
// Sampling parameters as a caller gives them, checked against their ranges. Lists of tokens (bias, bans) are not here:
// they need a vocabulary.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sample/chain.h"

namespace candor::sample {

struct RawParams {
  double temperature = 1.0;
  double dynatemp_range = 0.0;
  double dynatemp_exponent = 1.0;
  int64_t top_k = 0;
  double typical_p = 1.0;
  double top_p = 1.0;
  double min_p = 0.0;
  double xtc_probability = 0.0;
  double xtc_threshold = 0.1;
  double repetition_penalty = 1.0;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  int64_t repeat_last_n = kWholeWindow;
  double dry_multiplier = 0.0;
  double dry_base = 1.75;
  int64_t dry_allowed_length = 2;
  int64_t dry_penalty_last_n = kWholeWindow;
  int64_t no_repeat_ngram_size = 0;
  int64_t min_tokens = 0;
  std::vector<std::string> samplers{};  // the order of the stages; empty = the default
};

// The range of a number, for messages and command lines.
struct NumberRange {
  std::string_view field;
  double min = 0.0;
  double max = 0.0;
  std::string_view note{};  // " (0 = off)"
};
std::span<const NumberRange> number_ranges();
const NumberRange* find_range(std::string_view field);

// A stage that is on but missing from `samplers` is refused: it would be ignored.
Result<ChainParams> make_chain_params(const RawParams& raw);

// An error of `field` when value is outside [min, max].
Result<void> check_range(std::string_view field, int64_t value, int64_t min, int64_t max);

}  // namespace candor::sample
