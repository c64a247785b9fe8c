#include "quantize/search.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "tensor/encode.h"
#include "tensor/quant/block_math.h"
#include "tensor/quant/q2_k.h"
#include "tensor/quant/q3_k.h"
#include "tensor/quant/q4_0.h"
#include "tensor/quant/q4_k.h"
#include "tensor/quant/q5_0.h"
#include "tensor/quant/q5_k.h"
#include "tensor/quant/q6_k.h"

namespace candor::quantize {
namespace {

using quant::kSuperBlock;
using quant::round_clamped;
using Values = std::span<const float>;

constexpr int kMaxGroup = 32;

// A group's values with the weights of their errors.
struct Weighted {
  Values x;
  std::array<float, kMaxGroup> w;
};

Weighted weigh(Values x, float rms) {
  Weighted group{x, {}};
  for (size_t i = 0; i < x.size(); ++i) group.w[i] = rms + std::fabs(x[i]);
  return group;
}

float rms_of(Values x) {
  double sum = 0.0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return static_cast<float>(std::sqrt(sum / static_cast<double>(x.size())));
}

// x = scale * q - min, q in [0, q_max].
struct Affine {
  float scale = 0.0f;
  float min = 0.0f;
};

int affine_code(float x, Affine a, int q_max) {
  return round_clamped((x + a.min) * quant::inverse_or_zero(a.scale), 0, q_max);
}

double affine_loss(const Weighted& g, Affine a, int q_max) {
  double loss = 0.0;
  for (size_t i = 0; i < g.x.size(); ++i) {
    const float error = a.scale * static_cast<float>(affine_code(g.x[i], a, q_max)) - a.min - g.x[i];
    loss += static_cast<double>(g.w[i] * error * error);
  }
  return loss;
}

// The least-squares scale and minimum for the codes that `a` gives; a minimum below 0 is held at 0.
Affine refit(const Weighted& g, Affine a, int q_max) {
  double w = 0.0;
  double wq = 0.0;
  double wqq = 0.0;
  double wx = 0.0;
  double wqx = 0.0;
  for (size_t i = 0; i < g.x.size(); ++i) {
    const double q = affine_code(g.x[i], a, q_max);
    const double weight = static_cast<double>(g.w[i]);
    const double x = static_cast<double>(g.x[i]);
    w += weight;
    wq += weight * q;
    wqq += weight * q * q;
    wx += weight * x;
    wqx += weight * q * x;
  }
  const double determinant = w * wqq - wq * wq;
  if (determinant > 0.0) {
    const double scale = (w * wqx - wq * wx) / determinant;
    const double min = (wq * wqx - wqq * wx) / determinant;
    if (min >= 0.0 && scale > 0.0) return {static_cast<float>(scale), static_cast<float>(min)};
  }
  return wqq > 0.0 && wqx > 0.0 ? Affine{static_cast<float>(wqx / wqq), 0.0f} : a;
}

Affine search_affine(const Weighted& g, int q_max) {
  const quant::Range range = quant::range_of(g.x);
  const float min = std::max(0.0f, -range.min);
  const float span = std::max(0.0f, range.max + min);
  Affine best{span / static_cast<float>(q_max), min};
  if (span == 0.0f) return best;
  double best_loss = affine_loss(g, best, q_max);
  constexpr int kSteps = 12;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float levels = static_cast<float>(q_max) + 0.1f * static_cast<float>(step);
    const Affine fitted = refit(g, {span / levels, min}, q_max);
    for (const Affine candidate : {fitted, refit(g, fitted, q_max)}) {
      const double loss = affine_loss(g, candidate, q_max);
      if (loss < best_loss) {
        best = candidate;
        best_loss = loss;
      }
    }
  }
  return best;
}

// The integer scale and minimum of a group, next to the rounded ones, that lose least.
quant::ScaleMin round_affine(const Weighted& g, Affine a, Affine unit, int q_max, int level_max) {
  const int scale = round_clamped(a.scale * quant::inverse_or_zero(unit.scale), 0, level_max);
  const int min = round_clamped(a.min * quant::inverse_or_zero(unit.min), 0, level_max);
  quant::ScaleMin best;
  double best_loss = -1.0;
  for (int s = std::max(0, scale - 1); s <= std::min(level_max, scale + 1); ++s) {
    for (int m = std::max(0, min - 1); m <= std::min(level_max, min + 1); ++m) {
      const double loss = affine_loss(g, {unit.scale * static_cast<float>(s), unit.min * static_cast<float>(m)}, q_max);
      if (best_loss >= 0.0 && loss >= best_loss) continue;
      best = {static_cast<uint8_t>(s), static_cast<uint8_t>(m)};
      best_loss = loss;
    }
  }
  return best;
}

template <int n_groups, int q_max, int level_max>
quant::AffineLevels search_affine_levels(const float* src) {
  constexpr size_t kGroup = kSuperBlock / n_groups;
  std::array<Weighted, n_groups> groups;
  std::array<Affine, n_groups> fits;
  float largest_scale = 0.0f;
  float largest_min = 0.0f;
  for (size_t j = 0; j < n_groups; ++j) {
    const Values x(src + j * kGroup, kGroup);
    groups[j] = weigh(x, rms_of(x));
    fits[j] = search_affine(groups[j], q_max);
    largest_scale = std::max(largest_scale, fits[j].scale);
    largest_min = std::max(largest_min, fits[j].min);
  }
  quant::AffineLevels levels;
  levels.d = f32_to_f16(largest_scale / static_cast<float>(level_max));
  levels.dmin = f32_to_f16(largest_min / static_cast<float>(level_max));
  const Affine unit{f16_to_f32(levels.d), f16_to_f32(levels.dmin)};
  for (size_t j = 0; j < n_groups; ++j) {
    levels.groups[j] = round_affine(groups[j], fits[j], unit, q_max, level_max);
  }
  return levels;
}

// x = scale * q, q in [lo, -lo - 1].
double symmetric_loss(const Weighted& g, float scale, int lo) {
  const float inverse = quant::inverse_or_zero(scale);
  double loss = 0.0;
  for (size_t i = 0; i < g.x.size(); ++i) {
    const float error = scale * static_cast<float>(round_clamped(g.x[i] * inverse, lo, -lo - 1)) - g.x[i];
    loss += static_cast<double>(g.w[i] * error * error);
  }
  return loss;
}

float refit(const Weighted& g, float scale, int lo) {
  const float inverse = quant::inverse_or_zero(scale);
  double qq = 0.0;
  double qx = 0.0;
  for (size_t i = 0; i < g.x.size(); ++i) {
    const double q = round_clamped(g.x[i] * inverse, lo, -lo - 1);
    qq += static_cast<double>(g.w[i]) * q * q;
    qx += static_cast<double>(g.w[i]) * q * static_cast<double>(g.x[i]);
  }
  return qq > 0.0 ? static_cast<float>(qx / qq) : scale;
}

float search_symmetric(const Weighted& g, int lo) {
  const float extreme = quant::largest_magnitude(g.x);
  float best = extreme / static_cast<float>(lo);
  if (extreme == 0.0f) return best;
  double best_loss = symmetric_loss(g, best, lo);
  constexpr int kSteps = 12;
  for (const float sign : {1.0f, -1.0f}) {
    for (int step = -kSteps; step <= kSteps; ++step) {
      const float levels = static_cast<float>(lo) + 0.1f * static_cast<float>(step);
      const float candidate = refit(g, sign * extreme / levels, lo);
      const double loss = symmetric_loss(g, candidate, lo);
      if (loss < best_loss) {
        best = candidate;
        best_loss = loss;
      }
    }
  }
  return best;
}

template <int lo, int level_min>
quant::SymmetricLevels search_symmetric_levels(const float* src) {
  constexpr size_t kGroups = 16;
  std::array<Weighted, kGroups> groups;
  std::array<float, kGroups> fits{};
  for (size_t j = 0; j < kGroups; ++j) {
    const Values x(src + 16 * j, 16);
    groups[j] = weigh(x, rms_of(x));
    fits[j] = search_symmetric(groups[j], lo);
  }
  quant::SymmetricLevels levels;
  levels.d = f32_to_f16(quant::largest_magnitude(fits) / static_cast<float>(level_min));
  const float d = f16_to_f32(levels.d);
  for (size_t j = 0; j < kGroups; ++j) {
    const int middle = round_clamped(fits[j] * quant::inverse_or_zero(d), level_min, -level_min - 1);
    double best_loss = -1.0;
    for (int s = std::max(level_min, middle - 1); s <= std::min(-level_min - 1, middle + 1); ++s) {
      const double loss = symmetric_loss(groups[j], d * static_cast<float>(s), lo);
      if (best_loss >= 0.0 && loss >= best_loss) continue;
      levels.scales[j] = s;
      best_loss = loss;
    }
  }
  return levels;
}

void encode(const float* src, quant::BlockQ2_K& block) {
  quant::fill_block(src, search_affine_levels<16, 3, 15>(src), block);
}
void encode(const float* src, quant::BlockQ4_K& block) {
  quant::fill_block(src, search_affine_levels<8, 15, 63>(src), block);
}
void encode(const float* src, quant::BlockQ5_K& block) {
  quant::fill_block(src, search_affine_levels<8, 31, 63>(src), block);
}
void encode(const float* src, quant::BlockQ3_K& block) {
  quant::fill_block(src, search_symmetric_levels<-4, -32>(src), block);
}
void encode(const float* src, quant::BlockQ6_K& block) {
  quant::fill_block(src, search_symmetric_levels<-32, -128>(src), block);
}

// One f16 scale for 32: codes are chosen for the scale as it will be read.
template <int lo, class Block>
void encode_single(const float* src, Block& block) {
  const Values x(src, Block::kElements);
  const float scale = search_symmetric(weigh(x, rms_of(x)), lo);
  quant::fill_block(src, f16_to_f32(f32_to_f16(scale)), block);
}
void encode(const float* src, quant::BlockQ4_0& block) {
  encode_single<-8>(src, block);
}
void encode(const float* src, quant::BlockQ5_0& block) {
  encode_single<-16>(src, block);
}

template <class Block>
void encode_blocks(const float* src, int64_t n, std::byte* dst) {
  for (int64_t i = 0; i < n / Block::kElements; ++i) {
    Block block{};
    encode(src + i * Block::kElements, block);
    std::memcpy(dst + static_cast<size_t>(i) * sizeof(Block), &block, sizeof(Block));
  }
}

}  // namespace

void encode_searched(DType dtype, const float* src, int64_t n, std::byte* dst) {
  switch (dtype) {
    case DType::kQ2_K:
      return encode_blocks<quant::BlockQ2_K>(src, n, dst);
    case DType::kQ3_K:
      return encode_blocks<quant::BlockQ3_K>(src, n, dst);
    case DType::kQ4_K:
      return encode_blocks<quant::BlockQ4_K>(src, n, dst);
    case DType::kQ5_K:
      return encode_blocks<quant::BlockQ5_K>(src, n, dst);
    case DType::kQ6_K:
      return encode_blocks<quant::BlockQ6_K>(src, n, dst);
    case DType::kQ4_0:
      return encode_blocks<quant::BlockQ4_0>(src, n, dst);
    case DType::kQ5_0:
      return encode_blocks<quant::BlockQ5_0>(src, n, dst);
    default:
      return encode_elements(dtype, src, n, dst);
  }
}

}  // namespace candor::quantize
