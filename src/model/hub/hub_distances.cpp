#include "model/hub/hub_distances.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "formats/quote.h"

namespace candor::model {
namespace {

// distance: of what is seen, from what sees.
int64_t bucket_of(int32_t distance, int64_t n_buckets) {
  const int64_t half = n_buckets / 2, exact = half / 2, n = std::abs(distance);
  int64_t bucket = n;
  if (n >= exact) {
    const double grown = std::log(static_cast<double>(n) / static_cast<double>(exact)) /
                         std::log(static_cast<double>(kBucketReach) / static_cast<double>(exact));
    // Powers are on the border of two buckets, whatever a logarithm rounds to.
    constexpr double kRounding = 1e-9;
    bucket = std::min(half - 1, exact + static_cast<int64_t>(grown * static_cast<double>(half - exact) + kRounding));
  }
  return distance > 0 ? half + bucket : bucket;
}

}  // namespace

Result<std::vector<float>> distance_biases(const TensorView& buckets) {
  constexpr int64_t kMost = 4096;
  const Shape& shape = buckets.shape;
  const bool is_plain = buckets.dtype == DType::kF32 || buckets.dtype == DType::kF16 || buckets.dtype == DType::kBF16;
  if (!is_plain || shape.n_dims != 2 || shape[0] < 4 || shape[0] % 4 != 0 || shape[0] > kMost || shape[1] > kMost ||
      shape[0] / 4 >= kBucketReach) {
    return fail(ErrorKind::kUnsupported, fmt::format("tensor {}: shape {}; expected a row for each bucket, a multiple "
                                                     "of 4 of them, in F32, F16 or BF16",
                                                     formats::in_quotes(buckets.name), to_string(shape)));
  }
  const auto n_heads = static_cast<size_t>(shape[1]);
  std::vector<float> rows(static_cast<size_t>(shape.n_elements()));
  decode_rows(buckets, rows.data());
  std::vector<float> biases;
  biases.reserve(n_heads * (2 * kBucketReach + 1));
  for (size_t head = 0; head < n_heads; ++head) {
    for (int32_t distance = -kBucketReach; distance <= kBucketReach; ++distance) {
      biases.push_back(rows[static_cast<size_t>(bucket_of(distance, shape[0])) * n_heads + head]);
    }
  }
  return biases;
}

}  // namespace candor::model
