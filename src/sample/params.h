#pragma once
// SamplingParams checked against candor/sampling_table.h, and the chain that they make. Lists of tokens (bias, bans)
// are left to those who have a vocabulary.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "candor/request.h"
#include "sample/chain.h"

namespace candor::sample {

// A stage that is on but missing from `samplers` is refused: it would be ignored.
Result<ChainParams> make_chain_params(const SamplingParams& sampling);

// An error of `field` when value is outside [min, max].
Result<void> check_range(std::string_view field, int64_t value, int64_t min, int64_t max);

}  // namespace candor::sample
