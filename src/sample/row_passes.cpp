#include "sample/row_passes.h"

#include <algorithm>
#include <cstring>

namespace candor::sample {
namespace {

// Vectors of the compiler: every 64-bit target has them, without a choice at run time.
constexpr size_t kWidth = 4;
using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));

Float4 load(const float* at) {
  Float4 x;
  std::memcpy(&x, at, sizeof x);
  return x;
}

void store(float* at, const Float4& x) {
  std::memcpy(at, &x, sizeof x);
}

Float4 all(float x) {
  return Float4{x, x, x, x};
}

Float4 larger(Float4 a, Float4 b) {
  return a > b ? a : b;
}

float greatest_of(const Float4& x) {
  return std::max({x[0], x[1], x[2], x[3]});
}

}  // namespace

RowRange scan_row(std::span<const float> row, float* copy, std::vector<float>& maxima) {
  maxima.resize((row.size() + kChunk - 1) / kChunk);
  float greatest = -kInfinity;
  Int4 valid = {-1, -1, -1, -1};
  for (size_t chunk = 0; chunk < maxima.size(); ++chunk) {
    const float* data = row.data() + chunk * kChunk;
    float* dst = copy + chunk * kChunk;
    const size_t n = std::min(kChunk, row.size() - chunk * kChunk);
    Float4 most = all(-kInfinity);
    size_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      const Float4 x = load(data + i);
      store(dst + i, x);
      most = larger(x, most);
      valid &= x < kInfinity;
    }
    for (; i < n; ++i) {
      dst[i] = data[i];
      most = larger(all(data[i]), most);
      valid &= all(data[i]) < kInfinity;
    }
    maxima[chunk] = greatest_of(most);
    greatest = std::max(greatest, maxima[chunk]);
  }
  return {greatest, (valid[0] & valid[1] & valid[2] & valid[3]) != 0};
}

void scale_row(std::span<const float> src, float greatest, float divisor, float* dst) {
  size_t i = 0;
  for (; i + kWidth <= src.size(); i += kWidth) store(dst + i, (load(src.data() + i) - greatest) / divisor);
  for (; i < src.size(); ++i) dst[i] = (src[i] - greatest) / divisor;
}

}  // namespace candor::sample
