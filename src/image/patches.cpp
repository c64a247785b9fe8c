#include "image/patches.h"

#include <array>

#include "base/half.h"

namespace candor::image {
namespace {

float rounded(double v) {
  return bf16_to_f32(f32_to_bf16(static_cast<float>(v)));
}

float normalised(float v, const Normalisation& how, size_t channel) {
  const auto mean = static_cast<float>(how.mean[channel]);
  const auto deviation = static_cast<float>(how.deviation[channel]);
  if (how.does_normalise && how.does_rescale && how.is_rounded) {
    const float scaled = rounded(v * static_cast<float>(how.rescale_factor));
    return rounded(rounded(scaled - rounded(mean)) / rounded(deviation));
  }
  if (how.does_normalise && how.does_rescale) {
    const auto n = static_cast<float>(1.0 / how.rescale_factor);
    return (v - mean * n) / (deviation * n);
  }
  if (how.does_normalise) return (v - mean) / deviation;
  return how.does_rescale ? v * static_cast<float>(how.rescale_factor) : v;
}

}  // namespace

std::array<std::array<float, 256>, 3> normalised_bytes(const Normalisation& normalisation) {
  std::array<std::array<float, 256>, 3> table{};
  for (size_t channel = 0; channel < 3; ++channel) {
    for (size_t v = 0; v < 256; ++v) table[channel][v] = normalised(static_cast<float>(v), normalisation, channel);
  }
  return table;
}

Tile cut_patches(View image, int32_t side, const Normalisation& normalisation) {
  const auto table = normalised_bytes(normalisation);
  Tile tile{.rows = image.height / side, .cols = image.width / side};
  const auto p = static_cast<size_t>(side);
  const size_t n_cols = static_cast<size_t>(tile.cols);
  tile.patches.resize(static_cast<size_t>(tile.rows) * n_cols * 3 * p * p);
  for (int32_t y = 0; y < tile.rows * side; ++y) {
    const uint8_t* from = image.row(y).data();
    const size_t first_patch = static_cast<size_t>(y / side) * n_cols;
    for (size_t patch = 0; patch < n_cols; ++patch) {
      float* to = tile.patches.data() + (first_patch + patch) * 3 * p * p + static_cast<size_t>(y % side) * p;
      for (size_t x = 0; x < p; ++x, from += 3) {
        for (size_t channel = 0; channel < 3; ++channel) to[channel * p * p + x] = table[channel][from[channel]];
      }
    }
  }
  return tile;
}

}  // namespace candor::image
