#include "quantize/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "platform/four_floats.h"
#include "quantize/grid_search.h"
#include "tensor/encode.h"
#include "tensor/quant/block_math.h"
#include "tensor/quant/iq2.h"
#include "tensor/quant/iq3.h"
#include "tensor/quant/iq4.h"
#include "tensor/quant/mxfp4.h"
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

// Four candidates side by side, each summed over the group's values in their order: the same on every processor.
using platform::four;
using platform::Four;

// To the nearest integer in [lo, hi], halves to even: near 1.5 * 2^23 floats are integers.
Four nearest_codes(Four x, float lo, float hi) {
  constexpr float kIntegers = 12582912.0f;
  return platform::clamped(x, four(lo), four(hi)) + kIntegers - kIntegers;
}

// A group's values with the weights of their errors, once for each candidate.
template <int n>
struct Group {
  Four x[n];
  Four w[n];
  Four sum_w;
  Four sum_wx;
};

// Values with how much each matters besides its size; nullptr: all alike.
struct Source {
  const float* x;
  const float* importance;

  Source from(size_t i) const { return {x + i, importance == nullptr ? nullptr : importance + i}; }
};

template <int n>
Group<n> weigh(Source src) {
  const float* x = src.x;
  double squares = 0.0;
  for (int i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const float rms = static_cast<float>(std::sqrt(squares / n));
  Group<n> group;
  group.sum_w = group.sum_wx = Four{};
  for (int i = 0; i < n; ++i) {
    group.x[i] = four(x[i]);
    const float w = rms + std::fabs(x[i]);
    group.w[i] = four(src.importance == nullptr ? w : w * src.importance[i]);
    group.sum_w += group.w[i];
    group.sum_wx += group.w[i] * group.x[i];
  }
  return group;
}

Four inverse_or_zero(Four d) {
  return d == four(0.0f) ? four(0.0f) : 1.0f / d;
}

// x = scale * q - min, q in [0, q_max].
struct Affine {
  float scale = 0.0f;
  float min = 0.0f;
};
struct FourAffine {
  Four scale;
  Four min;
};

// What scales and minimums lose, and the least-squares ones for the codes that they give; a minimum below 0 is held
// at 0.
struct AffineFits {
  Four loss;
  FourAffine refitted;
};

template <int n>
AffineFits fit(const Group<n>& g, const FourAffine& a, float q_max) {
  const Four inverse = inverse_or_zero(a.scale);
  Four loss{}, wq{}, wqq{}, wqx{};
  for (int i = 0; i < n; ++i) {
    const Four q = nearest_codes((g.x[i] + a.min) * inverse, 0.0f, q_max);
    const Four error = a.scale * q - a.min - g.x[i];
    const Four weighted = g.w[i] * q;
    loss += g.w[i] * error * error;
    wq += weighted;
    wqq += weighted * q;
    wqx += weighted * g.x[i];
  }
  const Four w = g.sum_w;
  const Four wx = g.sum_wx;
  const Four determinant = w * wqq - wq * wq;
  const Four scale = (w * wqx - wq * wx) / determinant;
  const Four min = (wq * wqx - wqq * wx) / determinant;
  const Four nothing = four(0.0f);
  const auto has_both = (determinant > nothing) & (min >= nothing) & (scale > nothing);
  const auto has_scale = (wqq > nothing) & (wqx > nothing);
  return {loss,
          {has_both ? scale : (has_scale ? wqx / wqq : a.scale), has_both ? min : (has_scale ? nothing : a.min)}};
}

// Keeps what loses least, the first of equals.
struct BestAffine {
  Affine at;
  float loss;
  void take(const FourAffine& candidates, const Four& losses) {
    for (int c = 0; c < 4; ++c) {
      if (!(losses[c] < loss)) continue;
      at = {candidates.scale[c], candidates.min[c]};
      loss = losses[c];
    }
  }
};

template <int n>
Affine search_affine(const Group<n>& g, const float* x, float q_max) {
  constexpr int kSteps = 12;
  const quant::Range range = quant::range_of({x, n});
  const float min = std::max(0.0f, -range.min);
  const float span = std::max(0.0f, range.max + min);
  const Affine plain{span / q_max, min};
  if (span == 0.0f) return plain;
  BestAffine best{plain, fit(g, {four(plain.scale), four(plain.min)}, q_max).loss[0]};
  for (int step = -kSteps; step <= kSteps; step += 4) {
    Four scale;
    for (int c = 0; c < 4; ++c) scale[c] = span / (q_max + 0.1f * static_cast<float>(step + c));
    FourAffine candidates = fit(g, {scale, four(min)}, q_max).refitted;
    for (int round = 0; round < 2; ++round) {
      const AffineFits found = fit(g, candidates, q_max);
      best.take(candidates, found.loss);
      candidates = found.refitted;
    }
  }
  return best.at;
}

// The integer scale and minimum of a group, next to the rounded ones, that lose least.
template <int n>
quant::ScaleMin round_affine(const Group<n>& g, Affine a, Affine unit, float q_max, int level_max) {
  const int scale = round_clamped(a.scale * quant::inverse_or_zero(unit.scale), 0, level_max);
  const int min = round_clamped(a.min * quant::inverse_or_zero(unit.min), 0, level_max);
  const auto level = [level_max](int middle, int c) { return std::clamp(middle + c - 1, 0, level_max); };
  quant::ScaleMin best;
  float best_loss = -1.0f;
  for (int s = 0; s < 3; ++s) {
    FourAffine candidates{four(unit.scale * static_cast<float>(level(scale, s))), Four{}};
    for (int m = 0; m < 3; ++m) candidates.min[m] = unit.min * static_cast<float>(level(min, m));
    const Four losses = fit(g, candidates, q_max).loss;
    for (int m = 0; m < 3; ++m) {
      if (best_loss >= 0.0f && losses[m] >= best_loss) continue;
      best = {static_cast<uint8_t>(level(scale, s)), static_cast<uint8_t>(level(min, m))};
      best_loss = losses[m];
    }
  }
  return best;
}

template <int n_groups, int q_max, int level_max>
quant::AffineLevels search_affine_levels(Source src) {
  constexpr int kGroup = kSuperBlock / n_groups;
  std::array<Group<kGroup>, n_groups> groups;
  std::array<Affine, n_groups> fits;
  float largest_scale = 0.0f;
  float largest_min = 0.0f;
  for (size_t j = 0; j < n_groups; ++j) {
    groups[j] = weigh<kGroup>(src.from(j * kGroup));
    fits[j] = search_affine(groups[j], src.x + j * kGroup, static_cast<float>(q_max));
    largest_scale = std::max(largest_scale, fits[j].scale);
    largest_min = std::max(largest_min, fits[j].min);
  }
  quant::AffineLevels levels;
  levels.d = f32_to_f16(largest_scale / static_cast<float>(level_max));
  levels.dmin = f32_to_f16(largest_min / static_cast<float>(level_max));
  const Affine unit{f16_to_f32(levels.d), f16_to_f32(levels.dmin)};
  for (size_t j = 0; j < n_groups; ++j) {
    levels.groups[j] = round_affine(groups[j], fits[j], unit, static_cast<float>(q_max), level_max);
  }
  return levels;
}

// What a scale multiplies: integers from lo to -lo - 1.
template <int lo>
struct Integers {
  static constexpr float kExtreme = lo;  // what the largest magnitude becomes where nothing is searched
  static constexpr float kStep = 0.1f;   // between extremes that are tried
  static Four nearest(Four x) { return nearest_codes(x, lo, -lo - 1.0f); }
};

// Or the values of a table, found by the nearest half of an integer.
template <const auto& values>
struct Table {
  static constexpr int kLow = *std::ranges::min_element(values);
  static constexpr int kHigh = *std::ranges::max_element(values);
  static constexpr float kExtreme = kLow;
  static constexpr float kStep = 1.0f;
  static constexpr auto kNearest = [] {
    std::array<float, 2 * (kHigh - kLow) + 1> nearest{};
    for (int half = 2 * kLow; half <= 2 * kHigh; ++half) {
      const auto distance = [half](int value) { return 2 * value < half ? half - 2 * value : 2 * value - half; };
      int best = values[0];
      for (const int value : values) best = distance(value) < distance(best) ? value : best;
      nearest[static_cast<size_t>(half - 2 * kLow)] = static_cast<float>(best);
    }
    return nearest;
  }();
  static Four nearest(Four x) {
    const Four half = (platform::clamped(x, four(kLow), four(kHigh)) - static_cast<float>(kLow)) * 2.0f + 0.5f;
    Four found;
    for (int c = 0; c < 4; ++c) found[c] = kNearest[static_cast<size_t>(static_cast<int>(half[c]))];
    return found;
  }
};

// x = scale * q, q one of the codes: what scales lose.
template <class Codes, int n>
Four symmetric_loss(const Group<n>& g, Four scale) {
  const Four inverse = inverse_or_zero(scale);
  Four loss{};
  for (int i = 0; i < n; ++i) {
    const Four error = scale * Codes::nearest(g.x[i] * inverse) - g.x[i];
    loss += g.w[i] * error * error;
  }
  return loss;
}

// The least-squares scales for the codes that `scale` gives.
template <class Codes, int n>
Four refit(const Group<n>& g, Four scale) {
  const Four inverse = inverse_or_zero(scale);
  Four qq{}, qx{};
  for (int i = 0; i < n; ++i) {
    const Four q = Codes::nearest(g.x[i] * inverse);
    const Four weighted = g.w[i] * q;
    qq += weighted * q;
    qx += weighted * g.x[i];
  }
  return qq > four(0.0f) ? qx / qq : scale;
}

template <class Codes, int n>
float search_symmetric(const Group<n>& g, const float* x) {
  constexpr int kSteps = 12;
  const float extreme = quant::largest_magnitude({x, n});
  float best = extreme / Codes::kExtreme;
  if (extreme == 0.0f) return best;
  float best_loss = symmetric_loss<Codes>(g, four(best))[0];
  for (const float sign : {1.0f, -1.0f}) {
    for (int step = -kSteps; step <= kSteps; step += 4) {
      Four scale;
      for (int c = 0; c < 4; ++c) {
        scale[c] = sign * extreme / (Codes::kExtreme + Codes::kStep * static_cast<float>(step + c));
      }
      const Four candidates = refit<Codes>(g, scale);
      const Four losses = symmetric_loss<Codes>(g, candidates);
      for (int c = 0; c < 4; ++c) {
        if (!(losses[c] < best_loss)) continue;
        best = candidates[c];
        best_loss = losses[c];
      }
    }
  }
  return best;
}

template <class Codes, int level_min, size_t n_groups>
quant::SymmetricLevels search_symmetric_levels(Source src) {
  constexpr int kGroup = kSuperBlock / n_groups;
  std::array<Group<kGroup>, n_groups> groups;
  std::array<float, n_groups> fits{};
  for (size_t j = 0; j < n_groups; ++j) {
    groups[j] = weigh<kGroup>(src.from(kGroup * j));
    fits[j] = search_symmetric<Codes>(groups[j], src.x + kGroup * j);
  }
  quant::SymmetricLevels levels;
  levels.d = f32_to_f16(quant::largest_magnitude(fits) / static_cast<float>(level_min));
  const float d = f16_to_f32(levels.d);
  for (size_t j = 0; j < n_groups; ++j) {
    const int middle = round_clamped(fits[j] * quant::inverse_or_zero(d), level_min, -level_min - 1);
    std::array<int, 4> near{};
    Four scales{};
    for (int c = 0; c < 4; ++c) {
      near[static_cast<size_t>(c)] = std::clamp(middle - 1 + c % 3, level_min, -level_min - 1);
      scales[c] = d * static_cast<float>(near[static_cast<size_t>(c)]);
    }
    const Four losses = symmetric_loss<Codes>(groups[j], scales);
    int best = 0;
    for (int c = 1; c < 3; ++c) best = losses[c] < losses[best] ? c : best;
    levels.scales[j] = near[static_cast<size_t>(best)];
  }
  return levels;
}

void encode(Source src, quant::BlockQ2_K& block) {
  quant::fill_block(src.x, search_affine_levels<16, 3, 15>(src), block);
}
void encode(Source src, quant::BlockQ4_K& block) {
  quant::fill_block(src.x, search_affine_levels<8, 15, 63>(src), block);
}
void encode(Source src, quant::BlockQ5_K& block) {
  quant::fill_block(src.x, search_affine_levels<8, 31, 63>(src), block);
}
void encode(Source src, quant::BlockQ3_K& block) {
  quant::fill_block(src.x, search_symmetric_levels<Integers<-4>, -32, 16>(src), block);
}
void encode(Source src, quant::BlockQ6_K& block) {
  quant::fill_block(src.x, search_symmetric_levels<Integers<-32>, -128, 16>(src), block);
}

// One f16 scale for 32: codes are chosen for the scale as it will be read.
template <class Codes, class Block>
void encode_single(Source src, Block& block) {
  const float scale = search_symmetric<Codes>(weigh<Block::kElements>(src), src.x);
  quant::fill_block(src.x, f16_to_f32(f32_to_f16(scale)), block);
}
void encode(Source src, quant::BlockQ4_0& block) {
  encode_single<Integers<-8>>(src, block);
}
void encode(Source src, quant::BlockQ5_0& block) {
  encode_single<Integers<-16>>(src, block);
}

void encode(Source src, quant::BlockIQ4_NL& block) {
  encode_single<Table<quant::kIq4Values>>(src, block);
}
void encode(Source src, quant::BlockIQ4_XS& block) {
  quant::fill_block(src.x, search_symmetric_levels<Table<quant::kIq4Values>, -32, 8>(src), block);
}

// The exponents next to the one that holds the largest magnitude: smaller ones cut it off, and say the others better.
void encode(Source src, quant::BlockMXFP4& block) {
  quant::encode_block(src.x, block);
  const int plain = block.e;
  Four scales;
  const auto near = [plain](int c) { return static_cast<uint8_t>(std::clamp(plain + (c == 3 ? 1 : -c), 0, 254)); };
  for (int c = 0; c < 4; ++c) scales[c] = quant::half_e8m0(near(c));
  const Four losses = symmetric_loss<Table<quant::kFp4TwiceValues>>(weigh<quant::BlockMXFP4::kElements>(src), scales);
  int best = 0;
  for (int c = 1; c < 4; ++c) best = losses[c] < losses[best] ? c : best;
  if (best != 0) quant::fill_block(src.x, near(best), block);
}

template <quant::GridBlock Block>
void encode(Source src, Block& block) {
  quant::GridCodes codes;
  encode_grid_searched(Block::kGrid, src.x, src.importance, codes);
  build_grid(codes, block);
}

template <class Block>
void encode_blocks(Source src, int64_t n, std::byte* dst) {
  for (int64_t i = 0; i < n / Block::kElements; ++i) {
    Block block{};
    encode(src.from(static_cast<size_t>(i * Block::kElements)), block);
    std::memcpy(dst + static_cast<size_t>(i) * sizeof(Block), &block, sizeof(Block));
  }
}

}  // namespace

void encode_searched(DType dtype, const float* x, const float* importance, int64_t n, std::byte* dst) {
  const Source src{x, importance};
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
    case DType::kIQ4_NL:
      return encode_blocks<quant::BlockIQ4_NL>(src, n, dst);
    case DType::kIQ4_XS:
      return encode_blocks<quant::BlockIQ4_XS>(src, n, dst);
    case DType::kMXFP4:
      return encode_blocks<quant::BlockMXFP4>(src, n, dst);
    case DType::kIQ2_XXS:
      return encode_blocks<quant::BlockIQ2_XXS>(src, n, dst);
    case DType::kIQ2_XS:
      return encode_blocks<quant::BlockIQ2_XS>(src, n, dst);
    case DType::kIQ2_S:
      return encode_blocks<quant::BlockIQ2_S>(src, n, dst);
    case DType::kIQ3_XXS:
      return encode_blocks<quant::BlockIQ3_XXS>(src, n, dst);
    case DType::kIQ3_S:
      return encode_blocks<quant::BlockIQ3_S>(src, n, dst);
    default:
      return encode_elements(dtype, x, n, dst);
  }
}

}  // namespace candor::quantize
