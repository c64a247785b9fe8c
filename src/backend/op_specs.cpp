#include "backend/op_specs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "base/rounded_math.h"

namespace candor::backend {
namespace {

// Pair whose wavelength makes `rotations` turns over the original context (YaRN's "correction dimension").
double yarn_pair(const RopeSpec& spec, double rotations) {
  const double ratio = spec.original_positions / (rotations * 2.0 * std::numbers::pi);
  return spec.n_dims * rounded_log(ratio) / (2.0 * rounded_log(spec.base));
}

// Slow pairs are interpolated, fast pairs are left alone, with a linear ramp over the pair's index between them.
double yarn_frequency(const RopeSpec& spec, double frequency, int32_t pair) {
  const double fast = yarn_pair(spec, spec.beta_fast);
  const double slow = yarn_pair(spec, spec.beta_slow);
  const double low = std::max(0.0, spec.is_truncated ? std::floor(fast) : fast);
  const double high = std::min(spec.n_dims - 1.0, spec.is_truncated ? std::ceil(slow) : slow);
  const double ramp = std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
  return frequency / spec.factor * ramp + frequency * (1.0 - ramp);
}

// As YaRN, with the ramp linear in the number of turns.
double llama3_frequency(const RopeSpec& spec, double frequency) {
  const double turns = spec.original_positions * frequency / (2.0 * std::numbers::pi);
  if (turns < spec.low_freq_factor) return frequency / spec.factor;
  if (turns >= spec.high_freq_factor) return frequency;
  const double ramp = (turns - spec.low_freq_factor) / (spec.high_freq_factor - spec.low_freq_factor);
  return frequency / spec.factor * (1.0 - ramp) + frequency * ramp;
}

double scaled_frequency(const RopeSpec& spec, double frequency, int32_t pair) {
  switch (spec.scaling) {
    case RopeScaling::kNone:
      return frequency;
    case RopeScaling::kLinear:
      return frequency / spec.factor;
    case RopeScaling::kYarn:
      return yarn_frequency(spec, frequency, pair);
    case RopeScaling::kLlama3:
      return llama3_frequency(spec, frequency);
  }
  return frequency;
}

}  // namespace

std::vector<double> rope_frequencies(const RopeSpec& spec) {
  if (!spec.own_frequencies.empty()) return spec.own_frequencies;
  std::vector<double> frequencies(static_cast<size_t>(spec.n_dims / 2));
  for (int32_t pair = 0; pair < spec.n_dims / 2; ++pair) {
    const size_t i = static_cast<size_t>(pair);
    double frequency = rounded_pow(spec.base, -2.0 * pair / spec.n_dims);
    if (!spec.frequency_factors.empty()) frequency /= static_cast<double>(spec.frequency_factors[i]);
    frequencies[i] = scaled_frequency(spec, frequency, pair);
  }
  return frequencies;
}

double temper_factor(const TemperSpec& spec, int32_t position) {
  const int32_t n_steps = (position + spec.offset) / spec.step;
  return 1.0 + static_cast<double>(spec.gain) * rounded_log(1.0 + n_steps);
}

std::vector<float> alibi_slopes(int32_t n_heads, float max_bias) {
  const int32_t power = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(std::max(1, n_heads))));
  std::vector<float> slopes;
  for (int32_t head = 0; head < n_heads; ++head) {
    const double step = head < power ? (head + 1.0) / power : (2.0 * (head - power) + 1.0) / (2.0 * power);
    slopes.push_back(static_cast<float>(rounded_pow(2.0, -static_cast<double>(max_bias) * step)));
  }
  return slopes;
}

int32_t KvLayout::max_head_dim() const {
  int32_t widest = heads.empty() ? head_dim : 0;
  for (const KvHeads& layer : heads) widest = std::max(widest, layer.head_dim);
  return widest;
}

int64_t kv_page_bytes(int32_t head_dim, KvType type) {
  const int64_t vectors = kBlockTokens;
  switch (type) {
    case KvType::kF32:
      return vectors * head_dim * 4;
    case KvType::kBf16:
      return vectors * head_dim * 2;
    case KvType::kQ8_0:
      return vectors * head_dim / 32 * 34;
    case KvType::kQ4:
      return vectors * head_dim / 32 * 18;
  }
  return 0;
}

int64_t kv_block_bytes(const KvLayout& layout) {
  int64_t n_bytes = 0;
  for (int32_t layer = 0; layer < layout.n_layers; ++layer) {
    const KvHeads heads = layout.heads_of(layer);
    n_bytes += heads.n_kv_heads * kv_page_bytes(heads.head_dim, layout.type);
  }
  return layout.n_planes() * n_bytes;
}

int64_t state_slot_bytes(const StateLayout& layout) {
  return layout.slot_floats() * static_cast<int64_t>(sizeof(float));
}

int64_t kv_pool_block_bytes(const KvLayout& layout) {
  const int64_t head = layout.n_planes() * kv_page_bytes(layout.heads_of(0).head_dim, layout.type);
  const int64_t n_bytes = kv_block_bytes(layout);
  return head > 0 && n_bytes / head % 2 == 0 ? n_bytes + head : n_bytes;
}

}  // namespace candor::backend
