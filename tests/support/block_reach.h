#pragma once
// The largest magnitude that a block of each weight format has for a scale of 1, for random blocks.

#include <map>

#include "base/error.h"
#include "tensor/dtype.h"

namespace candor::testing::internal {

inline float reach_of(DType dtype) {
  using enum DType;
  static const std::map<DType, float> kReaches = {
      {kF32, 1},
      {kF16, 1},
      {kBF16, 1},
      {kQ4_0, 8},
      {kQ4_1, 15},
      {kQ5_0, 16},
      {kQ5_1, 31},
      {kQ8_0, 128},
      {kQ2_K, 45},
      {kQ3_K, 128},
      {kQ4_K, 945},
      {kQ4_KFast, 945},
      {kQ5_K, 1953},
      {kQ6_K, 4096},
      {kIQ1_S, 15 * 9 / 8.0f},
      {kIQ1_M, 15 * 9 / 8.0f},
      {kIQ2_XXS, 31 * 43 / 8.0f},
      {kIQ2_XS, 31 * 43 / 8.0f},
      {kIQ2_S, 31 * 43 / 8.0f},
      {kIQ3_XXS, 31 * 62 / 4.0f},
      {kIQ3_S, 31 * 15},
      {kIQ4_NL, 127},
      {kIQ4_XS, 4064},
      {kTQ1_0, 4},
      {kTQ2_0, 8},
      {kQ1_0, 4},
      {kQ2_0, 8},
      {kMXFP4, 1},
      {kW8A8, 1},
      {kFP8, 1},
      {kFP4, 1},
  };
  const auto found = kReaches.find(dtype);
  CANDOR_CHECK(found != kReaches.end());  // a weight format without a row here
  return found->second;
}

}  // namespace candor::testing::internal
