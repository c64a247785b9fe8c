#pragma once
// What the kernels of layers with a state take. Layout of a state: backend/state_specs.h. Orders: docs/numerics.md,
// "Recurrent layers". Plain data: it is copied as bytes.

#include <cstdint>

namespace candor::backend::cuda {

// The rows of one sequence in a step, and where the state before them is kept.
struct StateSlice {
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int32_t slot = -1;  // below 0: all zeros
  int32_t first_save = 0;
  int32_t n_saves = 0;
};

// The state behind a row goes to a slot that no slice begins from.
struct RowSave {
  int32_t row = 0;
  int32_t slot = 0;
};

// The states of a layer, and what a step does with them. Saves of a slice ascend by row; the last row has one.
struct StatePlaces {
  float* base = nullptr;    // the layer's part of slot 0
  int64_t slot_floats = 0;  // from one slot to the next
  const StateSlice* slices = nullptr;
  const RowSave* saves = nullptr;
  int32_t n_slices = 0;
};

// x: [T, n_channels], convolved in place; taps and bias are of n channels from `first` on.
struct ConvRowsArgs {
  StatePlaces states{};
  float* x = nullptr;
  const float* taps = nullptr;  // [n, n_taps]
  const float* bias = nullptr;  // [n] or nullptr
  int32_t n_channels = 0;
  int32_t first = 0;
  int32_t n = 0;
  int32_t n_taps = 0;  // 2 to 8
  bool has_silu = true;
};

// qkv: [T, 2 * n_k_heads * k_dim + n_v_heads * v_dim]; dst: [T, n_v_heads * v_dim].
struct DeltaRowsArgs {
  StatePlaces states{};
  float* dst = nullptr;
  const float* qkv = nullptr;
  const float* alpha = nullptr;  // [T, n_v_heads], or [T, n_v_heads * k_dim]
  const float* beta = nullptr;   // [T, n_v_heads]
  const float* rate = nullptr;   // [n_v_heads]
  const float* bias = nullptr;   // as a row of alpha
  int64_t heads_at = 0;          // floats of a state before its matrices [n_v_heads, k_dim, v_dim]
  int32_t n_k_heads = 0;
  int32_t n_v_heads = 0;
  int32_t k_dim = 0;  // at most 512, as v_dim
  int32_t v_dim = 0;
  int32_t batch_rows = 0;  // whose inputs a block brings to shared memory together: set by run_delta_rule
  float q_scale = 0.0f;
  float share_scale = 1.0f;
  bool has_tiled_heads = false;  // value head h reads key head h % n_k_heads, not h / (n_v_heads / n_k_heads)
  bool has_channel_gates = false;
};

// xbc: [T, n_heads * head_dim + 2 * n_groups * state_dim]; dst: [T, n_heads * head_dim].
struct SsmRowsArgs {
  StatePlaces states{};
  float* dst = nullptr;
  const float* xbc = nullptr;
  const float* dt = nullptr;    // [T, n_heads]
  const float* rate = nullptr;  // [n_heads]
  const float* bias = nullptr;  // [n_heads]
  const float* skip = nullptr;  // [n_heads]
  int64_t heads_at = 0;         // floats of a state before its matrices [n_heads, state_dim, head_dim]
  int32_t n_heads = 0;
  int32_t n_groups = 0;
  int32_t state_dim = 0;  // at most 512
  int32_t head_dim = 0;
  float least_step = 0.0f;
  float most_step = 0.0f;
};

// Rows of a state space that a block takes together.
inline constexpr int32_t kSsmBatch = 4;

}  // namespace candor::backend::cuda
