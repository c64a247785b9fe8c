#pragma once
// The parameters of layers that keep a state: causal convolutions, delta rules, state spaces. Plain, comparable,
// printable data, with what lies where in a layer's state.

#include <cstdint>
#include <limits>

namespace candor::backend {

// Which key head a value head of a delta rule reads, of Hk and Hv = r Hk: head / r, or head % Hk.
enum class KeyHeads : uint8_t { kGrouped, kTiled };

inline constexpr int32_t kMaxStateDim = 512;
inline constexpr int32_t kMaxConvTaps = 8;

// A short causal convolution: the last n_taps inputs of each channel, the row's own among them, weighted.
struct ConvSpec {
  int32_t n_channels = 0;
  int32_t n_taps = 0;  // at most kMaxConvTaps; 0 = there is none
  bool has_silu = true;  // of the sum
  bool operator==(const ConvSpec&) const = default;

  // Its part of a layer's state: the last n_taps - 1 inputs [n_taps - 1, n_channels], oldest first.
  int64_t state_floats() const { return int64_t{n_taps - 1} * n_channels; }
};

// A layer with a recurrent state (Yang et al., "Gated delta networks", 2024): a short causal convolution over channels
// [q, k, v], then for each value head a matrix S [k_dim, v_dim] that each row decays, corrects and reads. With q and k
// of length 1 and q scaled by k_dim^-0.5:
//   S = S e^(rate softplus(alpha + bias));  S = S + k (v - S^T k)^T share sigmoid(beta);  output = S^T q.
struct DeltaSpec {
  int32_t n_k_heads = 0;
  int32_t n_v_heads = 0;  // a multiple of n_k_heads; 0 = the layer attends
  int32_t k_dim = 0;      // at most kMaxStateDim, as v_dim
  int32_t v_dim = 0;
  int32_t n_taps = 0;  // of the convolution: inputs up to the row's own, at most kMaxConvTaps
  KeyHeads key_heads = KeyHeads::kGrouped;
  // Alpha and bias for each row of S (Kimi Team, "Kimi Linear", 2025), not for all of S.
  bool has_channel_gates = false;
  float share_scale = 1.0f;  // share; 2 lets a row turn what S has for a key around
  bool operator==(const DeltaSpec&) const = default;

  int32_t n_gates() const { return n_v_heads * (has_channel_gates ? k_dim : 1); }
  int32_t k_width() const { return n_k_heads * k_dim; }
  int32_t v_width() const { return n_v_heads * v_dim; }
  int32_t n_channels() const { return 2 * k_width() + v_width(); }
  int32_t key_head(int32_t v_head) const {
    return key_heads == KeyHeads::kTiled ? v_head % n_k_heads : v_head / (n_v_heads / n_k_heads);
  }
  // A layer's state holds the last n_taps - 1 inputs of the convolution [n_taps - 1, n_channels], oldest first, then
  // the matrices [n_v_heads, k_dim, v_dim].
  ConvSpec conv() const { return {n_channels(), n_taps}; }
  int64_t conv_floats() const { return conv().state_floats(); }
  int64_t head_floats() const { return int64_t{k_dim} * v_dim; }
  int64_t state_floats() const { return conv_floats() + n_v_heads * head_floats(); }
};

// A state space of Mamba-2 (Dao and Gu, "Transformers are SSMs", 2024): a short causal convolution over channels [x, b,
// c], then for each head a matrix S [state_dim, head_dim] that each row decays, adds to and reads. With step =
// softplus(dt + bias) within [least_step, most_step], and b and c those of the head's group:
//   S = S e^(rate step) + b (step x)^T;  output = S^T c + skip x.
struct SsmSpec {
  int32_t n_heads = 0;    // 0 = there is none
  int32_t head_dim = 0;   // channels of x in a head
  int32_t n_groups = 0;   // divides n_heads
  int32_t state_dim = 0;  // of b and c in a group, at most kMaxStateDim
  int32_t n_taps = 0;     // of the convolution
  float least_step = 0.0f;
  float most_step = std::numeric_limits<float>::infinity();
  bool operator==(const SsmSpec&) const = default;

  int32_t width() const { return n_heads * head_dim; }
  int32_t n_channels() const { return width() + 2 * n_groups * state_dim; }
  int32_t group(int32_t head) const { return head / (n_heads / n_groups); }
  // A layer's state holds the convolution's, then the matrices [n_heads, state_dim, head_dim].
  ConvSpec conv() const { return {n_channels(), n_taps}; }
  int64_t conv_floats() const { return conv().state_floats(); }
  int64_t head_floats() const { return int64_t{state_dim} * head_dim; }
  int64_t state_floats() const { return conv_floats() + n_heads * head_floats(); }
};

}  // namespace candor::backend
