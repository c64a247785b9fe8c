#pragma once
// Relative positions in buckets, as T5 has them (Raffel et al., 2020) and MPNet after it (Song et al., 2020): half of
// the buckets for tokens before, half for those behind; of each half the first half for one distance each, the others
// for distances that grow by equal factors up to 128. Here each distance has a number of its own. Pure.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "tensor/tensor_view.h"

namespace candor::model {

inline constexpr int32_t kBucketReach = 128;  // farther distances are as this one

// buckets: [n, heads], of floats. [heads * (2 * kBucketReach + 1)].
Result<std::vector<float>> distance_biases(const TensorView& buckets);

}  // namespace candor::model
