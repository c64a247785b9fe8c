#pragma once
// What the headers of quantised formats share: the rounding of their encoders and the 6-bit scales of Q4_K and Q5_K.
// Formats are little-endian; a block is a packed struct (alignment 1), so that it can be read at any address.
// Encoders are simple and deterministic: they choose scales from extremes, without a search.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/half.h"
#include "tensor/quant/block_format.h"

namespace candor::quant {

static_assert(std::endian::native == std::endian::little, "block formats are read in place as little-endian");

// x to the nearest integer in [lo, hi], halves away from zero; NaN gives lo.
inline int round_clamped(float x, int lo, int hi) {
  const float r = std::round(x);
  if (!(r > static_cast<float>(lo))) return lo;
  return r < static_cast<float>(hi) ? static_cast<int>(r) : hi;
}

// x cut towards zero into [lo, hi]; NaN gives lo.
inline int trunc_clamped(float x, int lo, int hi) {
  if (!(x > static_cast<float>(lo))) return lo;
  return x < static_cast<float>(hi) ? static_cast<int>(x) : hi;
}

// 1 / d, and 0 for 0, so that a block of zeros encodes to zeros.
inline float inverse_or_zero(float d) {
  return d == 0.0f ? 0.0f : 1.0f / d;
}

// The first element of largest magnitude, with its sign; 0 for an empty span.
inline float largest_magnitude(std::span<const float> x) {
  float best = 0.0f;
  for (const float v : x) {
    if (std::fabs(v) > std::fabs(best)) best = v;
  }
  return best;
}

struct Range {
  float min = 0.0f;
  float max = 0.0f;
};

// REQUIRES: x is not empty.
inline Range range_of(std::span<const float> x) {
  const auto [lo, hi] = std::minmax_element(x.begin(), x.end());
  return {*lo, *hi};
}

inline uint8_t low_nibble(uint8_t byte) {
  return byte & 0x0fu;
}
inline uint8_t high_nibble(uint8_t byte) {
  return static_cast<uint8_t>(byte >> 4);
}
inline uint8_t two_nibbles(int low, int high) {
  return static_cast<uint8_t>(low | (high << 4));
}

struct ScaleMin {
  uint8_t scale = 0;
  uint8_t min = 0;
};

// Entry j (0..7) of the 12 bytes that hold eight 6-bit scales and eight 6-bit mins: bytes 0..3 hold scales 0..3 in
// their low six bits, bytes 4..7 mins 0..3; bytes 8..11 hold the low four bits of scale 4..7 (low nibble) and of
// min 4..7 (high nibble), whose upper two bits are the top bits of bytes 0..3 (scales) and 4..7 (mins).
inline ScaleMin unpack_scale_min(const uint8_t* packed, int j) {
  if (j < 4) return {static_cast<uint8_t>(packed[j] & 63u), static_cast<uint8_t>(packed[j + 4] & 63u)};
  const uint8_t low = packed[j + 4];
  return {static_cast<uint8_t>(low_nibble(low) | ((packed[j - 4] >> 6) << 4)),
          static_cast<uint8_t>(high_nibble(low) | ((packed[j] >> 6) << 4))};
}

// The inverse, for all eight entries. REQUIRES: entries below 64; packed: 12 bytes, overwritten.
inline void pack_scale_mins(const ScaleMin* entries, uint8_t* packed) {
  for (int j = 0; j < 4; ++j) {
    const ScaleMin low = entries[j];
    const ScaleMin high = entries[j + 4];
    packed[j] = static_cast<uint8_t>(low.scale | ((high.scale >> 4) << 6));
    packed[j + 4] = static_cast<uint8_t>(low.min | ((high.min >> 4) << 6));
    packed[j + 8] = two_nibbles(high.scale & 15, high.min & 15);
  }
}

// One level of a two-level affine encoding: n_groups equal groups of x with values scale * q - min, q in [0, q_max].
// Scales and mins become integers in [0, level_max] times d and dmin (already rounded to f16).
struct AffineLevels {
  f16 d = 0;
  f16 dmin = 0;
  ScaleMin groups[16]{};
};

inline AffineLevels affine_levels(std::span<const float> x, int n_groups, int q_max, int level_max) {
  float scales[16]{};
  float mins[16]{};
  const size_t group = x.size() / static_cast<size_t>(n_groups);
  for (int j = 0; j < n_groups; ++j) {
    const Range range = range_of(x.subspan(static_cast<size_t>(j) * group, group));
    mins[j] = std::max(0.0f, -range.min);
    scales[j] = std::max(0.0f, range.max + mins[j]) / static_cast<float>(q_max);
  }
  AffineLevels levels;
  levels.d = f32_to_f16(*std::max_element(scales, scales + n_groups) / static_cast<float>(level_max));
  levels.dmin = f32_to_f16(*std::max_element(mins, mins + n_groups) / static_cast<float>(level_max));
  const float inverse_d = inverse_or_zero(f16_to_f32(levels.d));
  const float inverse_dmin = inverse_or_zero(f16_to_f32(levels.dmin));
  for (int j = 0; j < n_groups; ++j) {
    levels.groups[j] = {static_cast<uint8_t>(round_clamped(scales[j] * inverse_d, 0, level_max)),
                        static_cast<uint8_t>(round_clamped(mins[j] * inverse_dmin, 0, level_max))};
  }
  return levels;
}

// One level of a two-level symmetric encoding: up to 16 groups with values d * scale * q.
struct SymmetricLevels {
  f16 d = 0;
  int scales[16]{};
};

// Groups of x with values in [-q_max, q_max - 1] times a scale in [-level_max, level_max - 1] times d.
// REQUIRES: x has kSuperBlock elements.
inline SymmetricLevels symmetric_levels(const float* x, int q_max, int level_max) {
  float scales[16];
  for (size_t g = 0; g < 16; ++g) scales[g] = largest_magnitude({x + 16 * g, 16}) / static_cast<float>(-q_max);
  SymmetricLevels levels;
  levels.d = f32_to_f16(largest_magnitude(scales) / static_cast<float>(-level_max));
  const float inverse = inverse_or_zero(f16_to_f32(levels.d));
  for (int g = 0; g < 16; ++g) levels.scales[g] = round_clamped(scales[g] * inverse, -level_max, level_max - 1);
  return levels;
}

// The integer of x in a group of affine_levels().
inline int affine_code(float x, const AffineLevels& levels, int group, int q_max) {
  const float scale = f16_to_f32(levels.d) * levels.groups[group].scale;
  const float min = f16_to_f32(levels.dmin) * levels.groups[group].min;
  return round_clamped((x + min) * inverse_or_zero(scale), 0, q_max);
}

}  // namespace candor::quant
