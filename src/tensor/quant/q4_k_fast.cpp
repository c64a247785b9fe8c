#include "tensor/quant/q4_k_fast.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "tensor/quant/block_math.h"

namespace candor::quant {
namespace {

constexpr int kLargest = 127;
constexpr int kCodes = 16;

// A group's weights are step * q - min.
struct Line {
  double step;
  double min;
};

struct Lines {
  Line of[8];

  explicit Lines(const BlockQ4_K& block) {
    const double d = f16_to_f32(block.d);
    const double dmin = f16_to_f32(block.dmin);
    for (int j = 0; j < 8; ++j) {
      const ScaleMin packed = unpack_scale_min(block.scales, j);
      of[j] = {d * packed.scale, dmin * packed.min};
    }
  }

  // The magnitude of D.
  double scale() const {
    double largest = 0.0;
    double steepest = 0.0;
    for (const Line& line : of) {
      largest = std::max({largest, std::fabs(line.min), std::fabs((kCodes - 1) * line.step - line.min)});
      steepest = std::max(steepest, std::fabs(line.step));
    }
    return std::max(largest / kLargest, steepest * 16 / 255);
  }
};

int nearest(double x) {
  return static_cast<int>(std::floor(x + 0.5));
}

}  // namespace

RebasedQ4_K rebase(const BlockQ4_K& block) {
  RebasedQ4_K result{};
  const bool is_finite = std::isfinite(f16_to_f32(block.d)) && std::isfinite(f16_to_f32(block.dmin));
  result.d = std::numeric_limits<float>::quiet_NaN();
  if (!is_finite) return result;
  const Lines lines(block);
  const bool is_negative = f16_to_f32(block.d) < 0.0f;
  result.d = static_cast<float>(is_negative ? -lines.scale() : lines.scale());
  if (result.d == 0.0f) return result;
  const double inverse = 1.0 / result.d;
  for (int j = 0; j < 8; ++j) {
    const Line line = {lines.of[j].step * inverse, lines.of[j].min * inverse};
    const int a = std::min(nearest(line.step * 16), 255);
    int sum = 0;
    for (int q = 0; q < kCodes; ++q) sum += rebased_weight(q, a, 0);
    const double mean = line.step * 7.5 - line.min - sum / 16.0;
    result.a[j] = static_cast<uint8_t>(a);
    result.b[j] = static_cast<int8_t>(std::clamp(nearest(mean), -kLargest, kLargest - rebased_weight(15, a, 0)));
  }
  return result;
}

void decode_block(const BlockQ4_KFast& block, float* dst) {
  const RebasedQ4_K rebased = rebase(block.block);
  for (int e = 0; e < kSuperBlock; ++e) {
    const int g = e / 32;
    const int q = (block.block.qs[32 * (g / 2) + e % 32] >> (4 * (g % 2))) & 15;
    dst[e] = rebased.d * static_cast<float>(rebased_weight(q, rebased.a[g], rebased.b[g]));
  }
}

}  // namespace candor::quant
