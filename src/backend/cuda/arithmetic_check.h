#pragma once
// Whether a device computes as docs/numerics.md says: the words of kernels/language.h, on numbers of every size and on
// the borders of denormals, infinity and NaN, against the same operations of the host. One thread.

#include <cstdint>
#include <string>

#include "backend/cuda/device.h"
#include "base/error.h"

namespace candor::backend::cuda {

struct ArithmeticReport {
  int64_t n_operations = 0;
  int64_t n_wrong = 0;
  // Of these: one side is 0, the other the smallest normal number. Which results count as tiny may differ there.
  int64_t n_wrong_at_border = 0;
  std::string first{};  // "fma(0x1p-126, ...) is ... on the device, ... on the host"
};
// n_random: triples of random numbers beside the special ones. Differences are counted; errors are those of the device.
Result<ArithmeticReport> check_arithmetic(Device& device, int64_t n_random);

}  // namespace candor::backend::cuda
