#include "sample/row_passes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace candor::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Vectors of the compiler: every 64-bit target has them, without a choice at run time.
constexpr size_t kWidth = 4;
using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));
using Float2 = float __attribute__((vector_size(8)));
using Double2 = double __attribute__((vector_size(16)));
using Word2 = uint64_t __attribute__((vector_size(16)));

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

Word2 to_integers(Float2 x) {
  constexpr double kInteger = 0x1p52;  // a double of this size holds no fraction
  const Double2 rounded = __builtin_convertvector(x, Double2) + kInteger;
  return std::bit_cast<Word2>(rounded) - std::bit_cast<uint64_t>(kInteger);
}

float greatest_of(const Float4& x) {
  return std::max({x[0], x[1], x[2], x[3]});
}

}  // namespace

RowRange scan_row(std::span<const float> row, std::vector<float>& maxima) {
  constexpr size_t kBlock = kLanes * kChunk;
  maxima.assign((row.size() + kBlock - 1) / kBlock * kLanes, -kInfinity);
  Float4 greatest = all(-kInfinity);
  Int4 valid = {-1, -1, -1, -1};
  for (size_t begin = 0; begin < row.size(); begin += kBlock) {
    const float* data = row.data() + begin;
    const size_t n = std::min(kBlock, row.size() - begin);
    float* lanes = maxima.data() + begin / kChunk;
    for (size_t lane = 0; lane < kLanes; lane += kWidth) {
      Float4 most = all(-kInfinity);
      for (size_t i = lane; i + kWidth <= n; i += kLanes) {
        const Float4 x = load(data + i);
        most = larger(x, most);
        valid &= x < kInfinity;
      }
      store(lanes + lane, most);
      greatest = larger(most, greatest);
    }
    for (size_t i = n / kWidth * kWidth; i < n; ++i) {
      lanes[i % kLanes] = std::max(lanes[i % kLanes], data[i]);
      greatest = larger(all(data[i]), greatest);
      valid &= all(data[i]) < kInfinity;
    }
  }
  return {greatest_of(greatest), (valid[0] & valid[1] & valid[2] & valid[3]) != 0};
}

void scale_row(std::span<const float> src, float greatest, float divisor, float* dst) {
  size_t i = 0;
  for (; i + kWidth <= src.size(); i += kWidth) store(dst + i, (load(src.data() + i) - greatest) / divisor);
  for (; i < src.size(); ++i) dst[i] = (src[i] - greatest) / divisor;
}

uint64_t weigh_row(const kernels::KernelTable& kernels, std::span<const float> row, float greatest, float* shares) {
  kernels.exp_sum(row.data(), greatest, static_cast<int64_t>(row.size()), shares);
  Word2 sum = {};
  size_t i = 0;
  for (; i + kWidth <= row.size(); i += kWidth) {
    const Float4 scaled = load(shares + i) * 0x1p40f;
    sum += to_integers(__builtin_shufflevector(scaled, scaled, 0, 1));
    sum += to_integers(__builtin_shufflevector(scaled, scaled, 2, 3));
  }
  uint64_t total = sum[0] + sum[1];
  for (; i < row.size(); ++i) total += weight_of(shares[i]);
  return total;
}

}  // namespace candor::sample
