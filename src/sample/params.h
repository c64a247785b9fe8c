#pragma once
// Sampling parameters as a caller gives them, checked against their ranges.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "sample/chain.h"

namespace candor::sample {

inline constexpr double kMaxTemperature = 100.0;

struct RawParams {
  double temperature = 1.0;
  int64_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
};

// An error that knows which field is wrong.
struct FieldError {
  std::string_view field;  // of static storage
  Error error;
};

tl::expected<ChainParams, FieldError> make_chain_params(const RawParams& raw);

// An error of `field` when value is outside [min, max].
tl::expected<void, FieldError> check_range(std::string_view field, int64_t value, int64_t min, int64_t max);

}  // namespace candor::sample
