// Operations on rows of activations. Orders: docs/numerics.md, "Rows".

#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"
#include "backend/cuda/kernels/row_args.h"

namespace candor::backend::cuda {

// The element of this thread, where each has one.
CANDOR_DEVICE int64_t own_element() {
  return static_cast<int64_t>(block_x()) * n_threads() + thread();
}

CANDOR_KERNEL(add_scaled, AddScaledArgs) {
  const int64_t i = own_element();
  if (i < args.n) args.dst[i] = fma_rn(args.src[i], args.scale, args.dst[i]);
}

CANDOR_KERNEL(scale_all, ScaleArgs) {
  const int64_t i = own_element();
  if (i < args.n) args.dst[i] = mul_rn(args.src[i], args.factor);
}

CANDOR_KERNEL(cap_all, SoftCapArgs) {
  const int64_t i = own_element();
  if (i < args.n) args.dst[i] = soft_cap_of(args.src[i], args.cap);
}

CANDOR_KERNEL(clamp_all, ClampArgs) {
  const int64_t i = own_element();
  if (i >= args.n) return;
  const float x = args.src[i];
  args.dst[i] = x < args.low ? args.low : x > args.high ? args.high : x;
}

// kind: GateKind's number; what its gate makes of x.
CANDOR_DEVICE float act(int32_t kind, float x) {
  switch (kind) {
    case 0:
      return silu_of(x);
    case 1:
      return gelu_of(x);
    case 2:
      return gelu_erf_of(x);
    case 3:
      return relu_of(x);
    case 4:
      return relu_squared_of(x);
    case 6:
      return sigmoid_of(x);
    default:
      return x;
  }
}

CANDOR_KERNEL(gate_all, GateArgs) {
  constexpr int32_t kClampedSilu = 5;
  const int64_t i = own_element();
  if (i >= args.n) return;
  const float gate = args.gate[i];
  if (args.kind == kClampedSilu) {
    args.dst[i] = clamped_silu_of(gate, args.up[i]);
  } else {
    const float y = act(args.kind, gate);
    args.dst[i] = args.up == nullptr ? y : mul_rn(y, args.up[i]);
  }
}

// Sixteen lanes, each twice in a warp, and the tree of docs/numerics.md. Every lane has the sum.
CANDOR_DEVICE float sum_lanes16(float x) {
  for (int mask = 8; mask > 0; mask /= 2) x = add_rn(x, shuffle_xor(x, mask));
  return x;
}

CANDOR_DEVICE float sum_of_row(const float* row, int32_t n) {
  float sum = 0.0f;
  for (int32_t i = static_cast<int32_t>(lane() % 16); i < n; i += 16) sum = add_rn(sum, row[i]);
  return sum_lanes16(sum);
}

CANDOR_DEVICE float squares_of_row(const float* row, float center, int32_t n) {
  float sum = 0.0f;
  for (int32_t i = static_cast<int32_t>(lane() % 16); i < n; i += 16) {
    const float c = sub_rn(row[i], center);
    sum = fma_rn(c, c, sum);
  }
  return sum_lanes16(sum);
}

// 1 / sqrt(mean of squares + epsilon).
CANDOR_DEVICE float inverse_root(float squares, int32_t n, float epsilon) {
  const float mean = div_rn(squares, static_cast<float>(n));
  return div_rn(1.0f, sqrt_rn(add_rn(mean, epsilon)));
}

CANDOR_KERNEL(rms_norm_rows, NormArgs) {
  const auto factor = shared<float>(0);
  const auto row = static_cast<int64_t>(block_x());
  const float* src = args.src + row * args.n_cols;
  if (warp() == 0) {
    const float r = inverse_root(squares_of_row(src, 0.0f, args.n_cols), args.n_cols, args.epsilon);
    if (lane() == 0) factor[0] = r;
  }
  sync_block();
  const float r = factor[0];
  const float* gains = args.gains == nullptr ? nullptr : args.gains + row % args.n_gain_rows * args.n_cols;
  float* dst = args.dst + row * args.n_cols;
  for (auto i = static_cast<int32_t>(thread()); i < args.n_cols; i += static_cast<int32_t>(n_threads())) {
    const float y = mul_rn(src[i], r);
    dst[i] = gains == nullptr ? y : mul_rn(y, gains[i]);
  }
}

CANDOR_KERNEL(layer_norm_rows, NormArgs) {
  const auto factor = shared<float>(0);
  const auto row = static_cast<int64_t>(block_x());
  const float* src = args.src + row * args.n_cols;
  if (warp() == 0) {
    const float mean = div_rn(sum_of_row(src, args.n_cols), static_cast<float>(args.n_cols));
    const float r = inverse_root(squares_of_row(src, mean, args.n_cols), args.n_cols, args.epsilon);
    if (lane() == 0) {
      factor[0] = r;
      factor[1] = mean;
    }
  }
  sync_block();
  const float r = factor[0];
  const float mean = factor[1];
  const float* gains = args.gains == nullptr ? nullptr : args.gains + row % args.n_gain_rows * args.n_cols;
  float* dst = args.dst + row * args.n_cols;
  for (auto i = static_cast<int32_t>(thread()); i < args.n_cols; i += static_cast<int32_t>(n_threads())) {
    float y = mul_rn(sub_rn(src[i], mean), r);
    if (gains != nullptr) y = mul_rn(y, gains[i]);
    if (args.bias != nullptr) y = add_rn(y, args.bias[i]);
    dst[i] = y;
  }
}

CANDOR_KERNEL(rope_rows, RopeRowsArgs) {
  const int32_t half = args.n_dims / 2;
  const auto row = static_cast<int64_t>(block_x());
  const float* cos = args.cos + row * half;
  const float* sin = args.sin + row * half;
  float* heads = args.x + row * args.n_heads * args.head_dim;
  const int32_t n_pairs = args.n_heads * half;
  for (auto pair = static_cast<int32_t>(thread()); pair < n_pairs; pair += static_cast<int32_t>(n_threads())) {
    const int32_t i = pair % half;
    float* head = heads + static_cast<int64_t>(pair / half) * args.head_dim;
    float* low = args.is_interleaved ? head + 2 * i : head + i;
    float* high = args.is_interleaved ? low + 1 : low + half;
    const float a = *low;
    const float b = *high;
    *low = fma_rn(a, cos[i], mul_rn(mul_rn(b, sin[i]), -1.0f));
    *high = fma_rn(a, sin[i], mul_rn(b, cos[i]));
  }
}

CANDOR_KERNEL(add_rows, AddRowsArgs) {
  const int64_t i = own_element();
  if (i >= static_cast<int64_t>(args.n_rows) * args.n_cols) return;
  const int64_t row = i / args.n_cols;
  const int64_t src_row = args.src_rows == nullptr ? row : args.src_rows[row];
  if (src_row >= 0) args.dst[i] = add_rn(args.dst[i], args.src[src_row * args.src_stride + i % args.n_cols]);
}

CANDOR_KERNEL(scale_rows, ScaleRowsArgs) {
  const int64_t i = own_element();
  if (i >= static_cast<int64_t>(args.n_rows) * args.n_cols) return;
  const int64_t row = i / args.n_cols;
  const int64_t src_row = args.src_rows == nullptr ? row : args.src_rows[row];
  args.dst[i] = mul_rn(args.src[src_row * args.n_cols + i % args.n_cols], args.factors[row]);
}

CANDOR_KERNEL(add_gated, AddGatedArgs) {
  const int64_t i = own_element();
  if (i >= static_cast<int64_t>(args.n_rows) * args.n_cols) return;
  args.dst[i] = fma_rn(args.src[i], sigmoid_of(args.gate[i / args.n_cols]), args.dst[i]);
}

CANDOR_KERNEL(copy_pieces, CopyPiecesArgs) {
  const int64_t i = own_element();
  const int64_t row_floats = static_cast<int64_t>(args.n_pieces) * args.width;
  if (i >= args.n_rows * row_floats) return;
  const int64_t row = i / row_floats;
  const int64_t piece = i % row_floats / args.width;
  const int64_t at = i % args.width;
  const int64_t src_row = args.src_rows == nullptr ? row : args.src_rows[row];
  args.dst[row * args.dst_stride + piece * args.dst_step + at] =
      args.src[src_row * args.src_stride + piece * args.src_step + at];
}

CANDOR_KERNEL(add_experts, AddExpertsArgs) {
  const int64_t i = own_element();
  if (i >= static_cast<int64_t>(args.n_rows) * args.n_cols) return;
  const int64_t row = i / args.n_cols;
  const int64_t col = i % args.n_cols;
  float sum = args.bias == nullptr ? 0.0f : args.bias[col];
  for (int64_t j = row * args.n_used; j < (row + 1) * args.n_used; ++j) {
    const float weight = args.weights == nullptr ? 1.0f : args.weights[j];
    sum = fma_rn(args.outputs[static_cast<int64_t>(args.places[j]) * args.n_cols + col], weight, sum);
  }
  args.dst[i] = sum;
}

CANDOR_DEVICE float replaced(float old, float y, float scale) {
  return scale == 1.0f ? y : fma_rn(fma_rn(old, -1.0f, y), scale, old);
}

// col: of the gains.
CANDOR_DEVICE float with_gains(const AddAdaptedArgs& args, float old, float y, int64_t col) {
  const float plain = args.bias == nullptr ? old : fma_rn(args.bias[col], -1.0f, old);
  const float grown = fma_rn(mul_rn(plain, args.gains_less_one[col]), args.scale, old);
  return fma_rn(mul_rn(y, args.gains[col]), args.factor, grown);
}

CANDOR_KERNEL(add_adapted, AddAdaptedArgs) {
  const int64_t i = own_element();
  if (i >= static_cast<int64_t>(args.n_rows) * args.n_cols) return;
  const int64_t col = i % args.n_cols;
  float* dst = args.dst + args.dst_rows[i / args.n_cols] * args.dst_stride + col;
  const float y = args.outputs[i];
  if (args.replaces) {
    *dst = replaced(*dst, y, args.scale);
  } else {
    *dst = args.gains == nullptr ? fma_rn(y, args.factor, *dst) : with_gains(args, *dst, y, col);
  }
}

}  // namespace candor::backend::cuda
