#pragma once
// What the kernels of rows take. Pointers are addresses of the device, rows are contiguous f32. Plain data: it is
// copied as bytes.

#include <cstdint>

namespace candor::backend::cuda {

// dst[i] = fma(src[i], scale, dst[i]), n elements.
struct AddScaledArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  float scale = 0.0f;
  int64_t n = 0;
};

// [n_rows, n_cols], a block of threads a row; dst may be src. Row i takes gains (or nullptr for ones) from
// i % n_gain_rows * n_cols on. bias: [n_cols] or nullptr, of a layer norm alone.
struct NormArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  const float* gains = nullptr;
  const float* bias = nullptr;
  float epsilon = 0.0f;
  int32_t n_rows = 0;
  int32_t n_cols = 0;
  int32_t n_gain_rows = 0;
};

// n elements: dst = act(gate) * up, or act(gate) where up is nullptr. kind: GateKind's number.
struct GateArgs {
  float* dst = nullptr;
  const float* gate = nullptr;
  const float* up = nullptr;
  int32_t kind = 0;
  int64_t n = 0;
};

// n elements: dst = src * factor.
struct ScaleArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  float factor = 0.0f;
  int64_t n = 0;
};

// n elements: dst = cap * tanh(src / cap); dst may be src.
struct SoftCapArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  float cap = 0.0f;
  int64_t n = 0;
};

// n elements, kept within the two.
struct ClampArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  float low = 0.0f;
  float high = 0.0f;
  int64_t n = 0;
};

// [n_rows, n_cols]: dst += src, by rows of src: row i takes src_rows[i] (nullptr: i), nothing where that is below 0.
// Strides in floats.
struct AddRowsArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  const int32_t* src_rows = nullptr;
  int64_t src_stride = 0;
  int32_t n_rows = 0;
  int32_t n_cols = 0;
};

// [n_rows, n_cols]: row i of dst times factors[i].
struct ScaleRowsArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  const float* factors = nullptr;
  const int32_t* src_rows = nullptr;  // row i of dst is made of this row of src; nullptr: of row i
  int32_t n_rows = 0;
  int32_t n_cols = 0;
};

// [n_rows, n_cols]: dst = fma(src, sigmoid(gate[row]), dst).
struct AddGatedArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  const float* gate = nullptr;
  int32_t n_rows = 0;
  int32_t n_cols = 0;
};

// Copies pieces: of row i, piece j: `width` floats from src + rows(i) * src_stride + j * src_step to dst + i *
// dst_stride + j * dst_step. src_rows: nullptr: row i itself.
struct CopyPiecesArgs {
  float* dst = nullptr;
  const float* src = nullptr;
  const int32_t* src_rows = nullptr;
  int64_t dst_stride = 0;
  int64_t src_stride = 0;
  int32_t dst_step = 0;
  int32_t src_step = 0;
  int32_t width = 0;
  int32_t n_pieces = 0;
  int32_t n_rows = 0;
};

// x: [n_rows, n_heads * head_dim] rotated in place; cos, sin: [n_rows, n_dims / 2]. is_interleaved: pairs (2i, 2i + 1),
// else (i, i + n_dims / 2).
struct RopeRowsArgs {
  float* x = nullptr;
  const float* cos = nullptr;
  const float* sin = nullptr;
  int32_t n_rows = 0;
  int32_t n_heads = 0;
  int32_t head_dim = 0;
  int32_t n_dims = 0;
  bool is_interleaved = false;
};

// Rows in an encoding of kernels/packed_weight.h. src: [n_rows] rows of n floats, `stride` apart; where src_rows is not
// nullptr, row i is encoded from row src_rows[i]. dst: rows of row_bytes.
struct EncodeArgs {
  std::byte* dst = nullptr;
  const float* src = nullptr;
  const int32_t* src_rows = nullptr;
  int64_t stride = 0;
  int64_t n = 0;
  int64_t row_bytes = 0;
  int64_t sums_at = 0;
  int64_t scales_at = 0;
  int64_t halves_at = 0;
  int32_t n_rows = 0;
};

// dst: [n_rows, n_cols] = the weighted outputs of each row's n_used experts, added to bias (or to zeros) in the order
// in which places and weights list them. outputs: [n_rows * n_used, n_cols].
struct AddExpertsArgs {
  float* dst = nullptr;
  const float* outputs = nullptr;
  const float* bias = nullptr;
  const int32_t* places = nullptr;  // [n_rows, n_used]
  const float* weights = nullptr;   // [n_rows, n_used], or nullptr: all are 1
  int32_t n_rows = 0;
  int32_t n_cols = 0;
  int32_t n_used = 0;
};

// What an adapter's outputs [n_rows, n_cols] make of rows dst_rows of dst (docs/numerics.md, "Adapters"). gains,
// gains_less_one, bias: [n_cols] or nullptr. replaces: the outputs are another product, of which `scale` counts.
struct AddAdaptedArgs {
  float* dst = nullptr;
  const float* outputs = nullptr;
  const int32_t* dst_rows = nullptr;
  const float* gains = nullptr;
  const float* gains_less_one = nullptr;
  const float* bias = nullptr;
  int64_t dst_stride = 0;
  float scale = 0.0f;
  float factor = 0.0f;
  int32_t n_rows = 0;
  int32_t n_cols = 0;
  bool replaces = false;
};

}  // namespace candor::backend::cuda
