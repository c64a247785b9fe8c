#include "sample/params.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace candor::sample {
namespace {

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

tl::unexpected<FieldError> out_of_range(std::string_view field, const std::string& value, const std::string& range) {
  return tl::unexpected(
      FieldError{field, Error{ErrorKind::kInvalidInput, std::string(field) + " is " + value + ", expected " + range}});
}

// NaN lies in no range.
bool lies_in(double value, double min, double max) {
  return value >= min && value <= max;
}

}  // namespace

tl::expected<void, FieldError> check_range(std::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  const std::string range = max == std::numeric_limits<int64_t>::max()
                                ? "at least " + std::to_string(min)
                                : std::to_string(min) + " to " + std::to_string(max);
  return out_of_range(field, std::to_string(value), range);
}

tl::expected<ChainParams, FieldError> make_chain_params(const RawParams& raw) {
  if (!lies_in(raw.temperature, 0.0, kMaxTemperature)) {
    return out_of_range("temperature", shown(raw.temperature), "0 to " + shown(kMaxTemperature));
  }
  if (raw.top_k < 0) return out_of_range("top_k", std::to_string(raw.top_k), "0 (off) or more");
  if (!lies_in(raw.top_p, 0.0, 1.0)) return out_of_range("top_p", shown(raw.top_p), "0 to 1 (off)");
  if (!lies_in(raw.min_p, 0.0, 1.0)) return out_of_range("min_p", shown(raw.min_p), "0 (off) to 1");
  ChainParams params;
  params.temperature = static_cast<float>(raw.temperature);
  params.top_k = static_cast<int32_t>(std::min<int64_t>(raw.top_k, std::numeric_limits<int32_t>::max()));
  params.top_p = raw.top_p;
  params.min_p = raw.min_p;
  return params;
}

}  // namespace candor::sample
