#pragma once
// The arithmetic of the CPU as tables of functions (matrix products, attention, norms, activation functions), one table
// for each instruction set, all giving the same bits (docs/numerics.md; README.md draws the data). Functions cannot
// fail, never allocate, start no threads and keep no state; a thread works on the sub-range that it is given. REQUIRES
// everywhere: the calling thread rounds to nearest even with FTZ and DAZ set; buffers that the contracts call aligned
// are aligned to 64 bytes; float rows otherwise have the alignment of float.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernels/attend.h"
#include "kernels/packed_weight.h"

namespace candor::kernels {

// dst[m, n] = sum over k of activation[m, k] * weight[n, k], for n of panels [panel_begin, panel_end).
struct MatmulArgs {
  WeightShape shape;
  const std::byte* weights = nullptr;      // packed matrix, aligned
  const std::byte* activations = nullptr;  // n_rows rows encoded by encode() in encoding_of(dtype), aligned,
                                           // encoded_row_bytes apart
  int32_t n_rows = 0;                      // M >= 1; weights stream once per kMatmulRows rows
  float* dst = nullptr;                    // row m at dst + m * dst_stride; columns >= n_out are not written
  int64_t dst_stride = 0;
  int64_t panel_begin = 0;
  int64_t panel_end = 0;
  std::byte* scratch = nullptr;  // matmul_scratch_bytes(), aligned; one for each thread
  // The last call with this scratch had the same dtype, n_in, activations and n_rows: what it prepared may be used.
  bool follows_its_like = false;
};
inline constexpr int32_t kMatmulRows = 256;

// Enough for any shape with this many columns and any number of rows.
size_t matmul_scratch_bytes(int64_t n_in);

struct RopeArgs {
  float* x = nullptr;  // n_heads heads of head_dim f32, rotated in place
  int32_t n_heads = 0;
  int32_t head_dim = 0;
  int32_t n_dims = 0;          // rotated dimensions of each head, even
  const float* cos = nullptr;  // [n_dims / 2] of this row's position
  const float* sin = nullptr;
};

// x: n_rows rows of one sequence, overwritten; channels [begin, end) of n_channels.
struct ConvArgs {
  float* x = nullptr;
  int32_t n_rows = 0;
  int64_t n_channels = 0;       // and distance of rows
  const float* past = nullptr;  // [n_taps - 1, n_channels], oldest first, or nullptr for zeros
  const float* taps = nullptr;  // [channels, n_taps], from channel `first` on
  int32_t n_taps = 0;           // 2 to 8
  const float* bias = nullptr;  // [channels], from `first` on, or nullptr
  int64_t first = 0;
  bool has_silu = true;
  int64_t begin = 0;
  int64_t end = 0;
};

// One row of one head of a delta rule.
struct DeltaArgs {
  const float* q = nullptr;  // [k_dim]
  const float* k = nullptr;  // [k_dim]
  const float* v = nullptr;  // [v_dim]
  int32_t k_dim = 0;         // at most 512
  int32_t v_dim = 0;
  float q_scale = 0.0f;
  float rate = 0.0f;            // below 0
  float alpha = 0.0f;           // with its bias; without a gate for each channel
  const float* alphas = nullptr;  // [k_dim], or nullptr: a gate for each channel
  const float* biases = nullptr;  // [k_dim], added to them
  float beta = 0.0f;
  float share_scale = 1.0f;     // of its sigmoid
  const float* from = nullptr;  // [k_dim, v_dim]: the state before the row, or nullptr for zeros
  float* to = nullptr;          // behind it; may be from
  float* dst = nullptr;         // [v_dim]
};

// Rows of one head of a state space, at most kSsmRows. x, b and c of successive rows are `stride` apart, dt
// `dt_stride`.
inline constexpr int32_t kSsmRows = 64;
struct SsmArgs {
  const float* x = nullptr;  // [head_dim]
  const float* b = nullptr;  // [state_dim]
  const float* c = nullptr;  // [state_dim]
  int64_t stride = 0;
  const float* dt = nullptr;
  int64_t dt_stride = 0;
  int32_t n_rows = 0;
  int32_t state_dim = 0;
  int32_t head_dim = 0;
  float bias = 0.0f;
  float rate = 0.0f;  // below 0
  float skip = 0.0f;
  float least_step = 0.0f;
  float most_step = 0.0f;
  const float* from = nullptr;  // [state_dim, head_dim]: the state before the rows, or nullptr for zeros
  float* to = nullptr;          // behind them; may be from
  float* dst = nullptr;         // [head_dim] of each row
  int64_t dst_stride = 0;
};

struct KernelTable {
  std::string_view name;         // what CANDOR_ISA names: "portable", "avx2", "avxvnni", "avx512vnni", "amx", "neon"...
  std::string_view description;  // "AVX-512 with VNNI"

  // dst: one encoded row, aligned. A group with a NaN or an infinity gets a NaN scale (kQ8...).
  void (*encode)(Encoding encoding, const float* src, int64_t n, std::byte* dst);
  void (*matmul)(const MatmulArgs& args);

  // dst, src: [n] f32, may be the same; gain: [n], or nullptr for ones; bias: [n] or nullptr.
  void (*rms_norm)(const float* src, const float* gain, float epsilon, int64_t n, float* dst);
  void (*layer_norm)(const float* src, const float* gain, const float* bias, float epsilon, int64_t n, float* dst);

  void (*rope_interleaved)(const RopeArgs& args);  // pairs (2i, 2i + 1)
  void (*rope_halves)(const RopeArgs& args);       // pairs (i, i + n_dims / 2)

  // dst[i] += src[i] * scale (one fma).
  void (*add_scaled)(const float* src, float scale, int64_t n, float* dst);
  // dst[i] = src[i] * scale; may be the same.
  void (*scale)(const float* src, float scale, int64_t n, float* dst);
  // dst[i] += bias[i].
  void (*add)(const float* bias, int64_t n, float* dst);
  // dst[i] = act(gate[i]) * up[i]; dst may be either; up may be nullptr: act(gate[i]). gelu is the tanh form.
  void (*silu_gate)(const float* gate, const float* up, int64_t n, float* dst);
  void (*gelu_gate)(const float* gate, const float* up, int64_t n, float* dst);
  void (*gelu_erf_gate)(const float* gate, const float* up, int64_t n, float* dst);
  void (*relu_gate)(const float* gate, const float* up, int64_t n, float* dst);
  void (*relu_squared_gate)(const float* gate, const float* up, int64_t n, float* dst);
  // dst[i] = g / (1 + exp(-1.702 g)) * (u + 1), g = min(gate[i], 7), u = clamp(up[i], -7, 7). REQUIRES: up.
  void (*clamped_silu_gate)(const float* gate, const float* up, int64_t n, float* dst);
  void (*sigmoid_gate)(const float* gate, const float* up, int64_t n, float* dst);
  void (*product_gate)(const float* gate, const float* up, int64_t n, float* dst);  // gate[i] * up[i]
  // dst[i] = cap * tanh(src[i] / cap); may be the same.
  void (*soft_cap)(const float* src, float cap, int64_t n, float* dst);

  void (*causal_conv)(const ConvArgs& args);
  void (*delta_row)(const DeltaArgs& args);
  void (*ssm_rows)(const SsmArgs& args);

  // Largest value; NaN counts as -infinity. n >= 1.
  float (*max)(const float* src, int64_t n);
  // dst[i] = exp(src[i] - shift); returns the sum in the 16-lane order. dst may be src or nullptr.
  float (*exp_sum)(const float* src, float shift, int64_t n, float* dst);
  // dst[i] = exp(src[i] - shift); returns the sum of dst[i] * 2^40, each rounded to the nearest integer, halves to
  // even. dst may be src. REQUIRES: src[i] <= shift.
  uint64_t (*exp_weights)(const float* src, float shift, int64_t n, float* dst);

  // Rounds k and v to the pages' format and writes them. A page is cleared when its first token is written, so
  // positions are stored in ascending order. REQUIRES: the blocks of the range belong to this sequence alone.
  void (*store_kv)(const StoreKvArgs& args);
  // dst = softmax(q k^T * scale) v. scratch: attend_scratch_bytes(head_dim). Splits one after another.
  void (*attend)(const AttendArgs& args, std::byte* scratch);
  // The same in pieces, for several threads: split s of splits_of_rows(args) writes partial s - first (each
  // attend_partial_bytes(n_rows * n_group_heads, head_dim), aligned), then combine turns them into dst. A split may be
  // attended in two calls: up to end_token, then from there on (resume_token), for the same queries or some of them.
  void (*attend_split)(const AttendArgs& args, int32_t split, std::byte* partial, std::byte* scratch);
  void (*attend_combine)(const AttendArgs& args, const std::byte* partials, std::byte* scratch);

  // For kernels/limits.h: reads n_bytes (at least 256), prefetched to the nearest cache or to the next one; runs rounds
  // of products and returns the operations done.
  uint64_t (*read_probe)(const std::byte* src, size_t n_bytes);
  uint64_t (*far_read_probe)(const std::byte* src, size_t n_bytes);
  int64_t (*int8_probe)(int64_t n_rounds);
  int64_t (*bf16_probe)(int64_t n_rounds);
  int64_t (*fma_probe)(int64_t n_rounds);
};

// Tables that this program holds and this CPU can run, slowest first; never empty ("portable").
std::vector<const KernelTable*> runnable_tables();

// The table of that name, or the fastest runnable one for "". An unknown or unsupported name is an error that lists
// what can run here.
Result<const KernelTable*> select_table(std::string_view name);

// select_table of the environment's CANDOR_ISA; the only place that reads it.
Result<const KernelTable*> select_table_from_environment();

}  // namespace candor::kernels
