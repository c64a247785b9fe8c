#pragma once
// SamplingParams checked against their ranges, and the chain that they make. Lists of tokens (bias, bans) are left to
// those who have a vocabulary.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "candor/request.h"
#include "sample/chain.h"

namespace candor::sample {

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
Result<ChainParams> make_chain_params(const SamplingParams& sampling);

// An error of `field` when value is outside [min, max].
Result<void> check_range(std::string_view field, int64_t value, int64_t min, int64_t max);

}  // namespace candor::sample
