#include "quantize/grid_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/quant/block_math.h"

namespace candor::quantize {
namespace {

using quant::GridCodes;
using quant::GridFormat;
using quant::kSuperBlock;

constexpr int kStepsAside = 20;  // to each side of the scale that spans a group's largest value
constexpr float kStepSize = 0.0125f;

constexpr size_t kNear = 32;
constexpr size_t kNearInSearch = 4;

// A grid's magnitudes, and the vectors that are nearest to each combination of them.
struct Levels {
  int n = 0;
  float values[8];
  float limits[8];                                   // between one and the next
  std::vector<std::array<uint16_t, kNear>> nearest;  // [n^span], the first weight's level the lowest digit; ascending
};

int n_levels(const GridFormat& format) {
  return format.span == 8 ? 3 : 8;
}

std::array<uint16_t, kNear> nearest_words(const GridFormat& format, const Levels& levels, const float* x) {
  std::vector<std::pair<float, uint16_t>> words;
  for (int i = 0; i < format.n_words(); ++i) {
    float error = 0.0f;
    for (int k = 0; k < format.span; ++k) {
      const float miss = x[k] - levels.values[quant::code_of_word(format.span, format.words[i], k)];
      error += miss * miss;
    }
    words.emplace_back(error, static_cast<uint16_t>(i));
  }
  std::partial_sort(words.begin(), words.begin() + kNear, words.end());
  std::array<uint16_t, kNear> nearest;
  for (size_t i = 0; i < kNear; ++i) nearest[i] = words[i].second;
  return nearest;
}

Levels make_levels(const GridFormat& format) {
  Levels levels;
  levels.n = n_levels(format);
  const auto n = static_cast<size_t>(levels.n);
  for (size_t i = 0; i < n; ++i) levels.values[i] = format.values[i];
  for (size_t i = 0; i + 1 < n; ++i) levels.limits[i] = 0.5f * (levels.values[i] + levels.values[i + 1]);
  size_t n_keys = 1;
  for (int k = 0; k < format.span; ++k) n_keys *= n;
  levels.nearest.resize(n_keys);
  for (size_t key = 0; key < n_keys; ++key) {
    float x[8] = {};
    size_t rest = key;
    for (int k = 0; k < format.span; ++k, rest /= n) x[k] = levels.values[rest % n];
    levels.nearest[key] = nearest_words(format, levels, x);
  }
  return levels;
}

// Made once for each grid.
const Levels& levels_of(const GridFormat& format) {
  struct Entry {
    std::once_flag once;
    Levels levels;
  };
  static std::array<Entry, 5> entries;
  using enum DType;
  constexpr std::array kDTypes = {kIQ2_XXS, kIQ2_XS, kIQ2_S, kIQ3_XXS, kIQ3_S};
  const auto* at = std::ranges::find(kDTypes, format.dtype);
  CANDOR_CHECK(at != kDTypes.end());
  Entry& entry = entries[static_cast<size_t>(at - kDTypes.begin())];
  std::call_once(entry.once, [&] { entry.levels = make_levels(format); });
  return entry.levels;
}

// Magnitudes (below 0 where the sign stored is the other one) and the weights of their errors.
struct Values {
  float x[kSuperBlock];
  float w[kSuperBlock];
};

// Vectors for a scale, and the sums of w x v and w v v over their values v.
struct Fit {
  std::array<uint16_t, 8> index{};
  float xv = 0.0f;
  float vv = 0.0f;

  float best_scale() const { return vv > 0.0f ? std::max(0.0f, xv / vv) : 0.0f; }
  float loss(float scale) const { return scale * (scale * vv - 2.0f * xv); }  // less w x x
};

// The combination of levels that is nearest to x.
size_t key_of(const GridFormat& format, const Levels& levels, const float* x, float inverse) {
  size_t key = 0;
  size_t digit = 1;
  for (int k = 0; k < format.span; ++k, digit *= static_cast<size_t>(levels.n)) {
    size_t level = 0;
    for (int i = 0; i + 1 < levels.n; ++i) level += x[k] * inverse > levels.limits[i] ? 1 : 0;
    key += level * digit;
  }
  return key;
}

// Of n values from x on. n_near: vectors that are compared by their own weighted errors.
Fit fit(const GridFormat& format, const Levels& levels, const float* x, const float* w, int n, float inverse,
        size_t n_near) {
  Fit fit;
  for (int at = 0; at < n; at += format.span) {
    const auto& nearest = levels.nearest[key_of(format, levels, x + at, inverse)];
    float least = std::numeric_limits<float>::infinity();
    float xv = 0.0f;
    float vv = 0.0f;
    for (size_t i = 0; i < n_near; ++i) {
      float own_xv = 0.0f;
      float own_vv = 0.0f;
      for (int k = 0; k < format.span; ++k) {
        const float value = levels.values[quant::code_of_word(format.span, format.words[nearest[i]], k)];
        own_xv += w[at + k] * x[at + k] * value;
        own_vv += w[at + k] * value * value;
      }
      const float loss = own_vv - 2.0f * own_xv * inverse;
      if (loss >= least) continue;
      least = loss;
      xv = own_xv;
      vv = own_vv;
      fit.index[static_cast<size_t>(at / format.span)] = nearest[i];
    }
    fit.xv += xv;
    fit.vv += vv;
  }
  return fit;
}

// Of 8 values. Seven signs leave out the last, so that where they are odd, the value that matters least is left below
// 0: it takes the other sign.
void take_magnitudes(int sign_bits, float* x, const float* w) {
  int n_negative = 0;
  int least = 0;
  for (int k = 0; k < 8; ++k) {
    n_negative += x[k] < 0.0f ? 1 : 0;
    x[k] = std::fabs(x[k]);
    if (w[k] * x[k] * x[k] < w[least] * x[least] * x[least]) least = k;
  }
  if (sign_bits == 7 && n_negative % 2 != 0) x[least] = -x[least];
}

Values weigh(const GridFormat& format, const float* x, const float* importance) {
  Values values;
  std::copy_n(x, kSuperBlock, values.x);
  for (int g = 0; g < 8; ++g) {
    double squares = 0.0;
    for (int k = 32 * g; k < 32 * (g + 1); ++k) squares += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    const float rms = static_cast<float>(std::sqrt(squares / 32));
    for (int k = 32 * g; k < 32 * (g + 1); ++k) {
      values.w[k] = (rms + std::fabs(x[k])) * (importance == nullptr ? 1.0f : importance[k]);
    }
  }
  for (int i = 0; i < 32; ++i) take_magnitudes(format.sign_bits, values.x + 8 * i, values.w + 8 * i);
  return values;
}

float largest(const float* x, int n) {
  return std::fabs(quant::largest_magnitude({x, static_cast<size_t>(n)}));
}

// The scale with the least loss, of any size.
float free_scale(const GridFormat& format, const Levels& levels, const float* x, const float* w, int n) {
  const float top = largest(x, n);
  if (top == 0.0f) return 0.0f;
  const float reach = levels.values[levels.n - 1];
  float best = 0.0f;
  float least = std::numeric_limits<float>::infinity();
  for (int i = -kStepsAside; i <= kStepsAside; ++i) {
    const Fit found =
        fit(format, levels, x, w, n, reach * (1.0f + kStepSize * static_cast<float>(i)) / top, kNearInSearch);
    const float scale = found.best_scale();
    if (found.loss(scale) >= least) continue;
    least = found.loss(scale);
    best = scale;
  }
  return best;
}

// The sub-scale with the least loss under d, near to what the scale asks for.
uint8_t choose_sub_scale(const GridFormat& format, const Levels& levels, const Values& values, int first, int n,
                         float d, float scale) {
  const int most = (1 << format.scale_bits) - 1;
  const int middle = quant::round_clamped(0.5f * (scale * quant::inverse_or_zero(d) - 1.0f), 0, most);
  int best = middle;
  float least = std::numeric_limits<float>::infinity();
  for (int s = std::max(0, middle - 1); s <= std::min(most, middle + 1); ++s) {
    const float step = d * static_cast<float>(2 * s + 1);
    const float inverse = quant::inverse_or_zero(step);
    const Fit found = fit(format, levels, values.x + first, values.w + first, n, inverse, kNear);
    if (found.loss(step) >= least) continue;
    least = found.loss(step);
    best = s;
  }
  return static_cast<uint8_t>(best);
}

// The vectors of 8 values for a step, and their signs. Where seven signs cannot say all eight, the value that takes the
// other sign is the one that makes the error least.
Fit place_eight(const GridFormat& format, const Levels& levels, const float* x, const float* w, float step,
                uint8_t& signs) {
  const float inverse = quant::inverse_or_zero(step);
  uint32_t own = 0;
  float magnitudes[8];
  for (int k = 0; k < 8; ++k) {
    own |= (x[k] < 0.0f ? 1u : 0u) << k;
    magnitudes[k] = std::fabs(x[k]);
  }
  signs = static_cast<uint8_t>(own);
  if (format.sign_bits == 8 || __builtin_popcount(own) % 2 == 0) {
    return fit(format, levels, magnitudes, w, 8, inverse, kNear);
  }
  Fit best;
  float least = std::numeric_limits<float>::infinity();
  for (int k = 0; k < 8; ++k) {
    magnitudes[k] = -magnitudes[k];
    const Fit found = fit(format, levels, magnitudes, w, 8, inverse, kNear);
    magnitudes[k] = -magnitudes[k];
    if (found.loss(step) >= least) continue;
    least = found.loss(step);
    best = found;
    signs = static_cast<uint8_t>(own ^ (1u << k));
  }
  return best;
}

}  // namespace

void encode_grid_searched(const GridFormat& format, const float* x, const float* importance, GridCodes& codes) {
  const Levels& levels = levels_of(format);
  codes = GridCodes{};
  const Values values = weigh(format, x, importance);
  const int n = kSuperBlock / format.n_groups;
  float scales[16];
  for (int g = 0; g < format.n_groups; ++g)
    scales[g] = free_scale(format, levels, values.x + g * n, values.w + g * n, n);
  const auto spans = static_cast<float>(2 * ((1 << format.scale_bits) - 1) + 1);
  const float d_of_largest = *std::max_element(scales, scales + format.n_groups) / spans;
  codes.d = f32_to_f16(std::ldexp(d_of_largest, format.halvings));
  const float d = std::ldexp(f16_to_f32(codes.d), -format.halvings);
  float xv = 0.0f;
  float vv = 0.0f;
  for (int g = 0; g < format.n_groups; ++g) {
    codes.scales[g] = choose_sub_scale(format, levels, values, g * n, n, d, scales[g]);
    const auto times = static_cast<float>(2 * codes.scales[g] + 1);
    for (int i = g * n / 8; i < (g + 1) * n / 8; ++i) {
      const Fit found = place_eight(format, levels, x + 8 * i, values.w + 8 * i, d * times, codes.signs[i]);
      std::copy_n(found.index.begin(), 8 / format.span, codes.index + 8 / format.span * i);
      xv += times * found.xv;
      vv += times * times * found.vv;
    }
  }
  if (vv > 0.0f && xv > 0.0f) codes.d = f32_to_f16(std::ldexp(xv / vv, format.halvings));
}

}  // namespace candor::quantize
