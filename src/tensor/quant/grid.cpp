#include "tensor/quant/grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tensor/quant/block_math.h"
#include "tensor/quant/grid_words.h"

namespace candor::quant {

namespace {

int sub_scale(uint8_t s) {
  return 2 * s + 1;
}

float scaled_d(const GridFormat& format, f16 d) {
  return std::ldexp(f16_to_f32(d), -format.halvings);
}

bool is_negative(const GridCodes& codes, int k) {
  return ((codes.signs[k / 8] >> (k % 8)) & 1) != 0;
}

// index: with its shift.
int unsigned_value(const GridFormat& format, uint32_t index, int k) {
  const uint32_t word = format.words[index & (static_cast<uint32_t>(format.n_words()) - 1u)];
  const uint32_t shift = index >> format.word_bits();
  return format.values[code_of_word(format.span, word, k) | (shift << 2)];
}

int value_of(const GridFormat& format, const GridCodes& codes, int k) {
  const int value = unsigned_value(format, codes.index[k / format.span], k % format.span);
  return format.sign_bits > 0 && is_negative(codes, k) ? -value : value;
}

// The largest magnitude of the format's values.
float reach(const GridFormat& format) {
  int most = 0;
  for (const int8_t value : format.values) most = std::max(most, std::abs(static_cast<int>(value)));
  return static_cast<float>(most);
}

// Signs of 8 weights; x becomes their magnitudes, of which one is below zero where seven bits cannot say its sign.
uint8_t take_signs(const GridFormat& format, float* x) {
  uint32_t signs = 0;
  for (int k = 0; k < 8; ++k) signs |= (x[k] < 0.0f ? 1u : 0u) << k;
  for (int k = 0; k < 8; ++k) x[k] = std::fabs(x[k]);
  if (format.sign_bits == 8 || __builtin_popcount(signs) % 2 == 0) return static_cast<uint8_t>(signs);
  const auto least = std::min_element(x, x + 8) - x;
  x[least] = -x[least];
  return static_cast<uint8_t>(signs ^ (1u << least));
}

struct Nearest {
  uint16_t index = 0;
  float error = std::numeric_limits<float>::infinity();
};

// Of the vectors [begin, end). x: [span], in units of the format's values.
Nearest nearest_vector(const GridFormat& format, const float* x, uint32_t begin, uint32_t end) {
  Nearest best;
  for (uint32_t i = begin; i < end; ++i) {
    float error = 0.0f;
    for (int k = 0; k < format.span; ++k) {
      const float miss = x[k] - static_cast<float>(unsigned_value(format, i, k));
      error += miss * miss;
    }
    if (error < best.error) best = {static_cast<uint16_t>(i), error};
  }
  return best;
}

// n weights of x from vector `first` on, all shifted alike; returns the error.
float place_vectors(const GridFormat& format, std::span<const float> x, uint32_t begin, uint32_t end, uint16_t* index) {
  float error = 0.0f;
  for (size_t k = 0; k < x.size(); k += static_cast<size_t>(format.span)) {
    const Nearest nearest = nearest_vector(format, x.data() + k, begin, end);
    *index++ = nearest.index;
    error += nearest.error;
  }
  return error;
}

void place_group(const GridFormat& format, std::span<const float> x, uint16_t* index) {
  const uint32_t n_words = 1u << format.index_bits;
  if (format.shift_group <= format.span) {
    place_vectors(format, x, 0, n_words, index);
    return;
  }
  uint16_t shifted[8];
  const float up = place_vectors(format, x, 0, n_words / 2, index);
  const float down = place_vectors(format, x, n_words / 2, n_words, shifted);
  if (down < up) std::copy_n(shifted, x.size() / static_cast<size_t>(format.span), index);
}

}  // namespace

constinit const std::array<uint16_t, 256> kIQ2_XXSWords = words_of(kIQ2_XXSEntries, 3, 8);
constinit const std::array<uint16_t, 512> kIQ2_XSWords = words_of(kIQ2_XSEntries, 3, 8);
constinit const std::array<uint16_t, 1024> kIQ2_SWords = words_of(kIQ2_SEntries, 3, 8);
constinit const std::array<uint16_t, 256> kIQ3_XXSWords = words_of(kIQ3_XXSEntries, 8, 4);
constinit const std::array<uint16_t, 512> kIQ3_SWords = words_of(kIQ3_SEntries, 8, 4);
constinit const std::array<uint16_t, 2048> kIQ1Words = words_of(kIQ1Entries, 3, 8);

void decode_grid(const GridFormat& format, const GridCodes& codes, float* dst) {
  const float d = scaled_d(format, codes.d);
  const int group = kSuperBlock / format.n_groups;
  for (int k = 0; k < kSuperBlock; ++k) {
    const float scale = d * static_cast<float>(sub_scale(codes.scales[k / group]));
    dst[k] = scale * static_cast<float>(value_of(format, codes, k));
  }
}

void encode_grid(const GridFormat& format, const float* src, GridCodes& codes) {
  const auto group = static_cast<size_t>(kSuperBlock / format.n_groups);
  const int most = (1 << format.scale_bits) - 1;
  const float largest = std::fabs(largest_magnitude({src, kSuperBlock}));
  codes = GridCodes{};
  codes.d = f32_to_f16(std::ldexp(largest / (reach(format) * static_cast<float>(2 * most + 1)), format.halvings));
  const float d = scaled_d(format, codes.d);
  float x[kSuperBlock];
  for (size_t g = 0; g < static_cast<size_t>(format.n_groups); ++g) {
    const float* from = src + g * group;
    const float ratio = std::fabs(largest_magnitude({from, group})) * inverse_or_zero(d * reach(format));
    codes.scales[g] = static_cast<uint8_t>(round_clamped(0.5f * (ratio - 1.0f), 0, most));
    const float inverse = inverse_or_zero(d * static_cast<float>(sub_scale(codes.scales[g])));
    for (size_t k = 0; k < group; ++k) x[g * group + k] = from[k] * inverse;
  }
  for (int j = 0; format.sign_bits > 0 && j < 32; ++j) codes.signs[j] = take_signs(format, x + 8 * j);
  const size_t together = std::max<size_t>(static_cast<size_t>(format.shift_group), 8);
  for (size_t k = 0; k < kSuperBlock; k += together) {
    place_group(format, {x + k, together}, codes.index + k / static_cast<size_t>(format.span));
  }
}

}  // namespace candor::quant
