// Activations as products want them: rows as int8 with scales, rounded to bf16, or copied. docs/numerics.md,
// "Activations"; the bytes are those of kernels/packed_weight.h. A block's x is a row, its y a piece of it.

#include "backend/cuda/kernels/language.h"
#include "backend/cuda/kernels/row_args.h"

namespace candor::backend::cuda {

namespace {

constexpr int32_t kCodesOfLane = 8;
constexpr int32_t kCodesOfWarp = 32 * kCodesOfLane;
constexpr uint32_t kMagnitude = 0x7fffffffu;
constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kNotANumber = 0x7fc00000u;

struct GroupScale {
  float scale;
  float inverse;  // 0: all codes are
};

// largest: the largest of the magnitudes' bits, which order as integers, NaN above infinity.
CANDOR_DEVICE GroupScale group_scale_of(uint32_t largest) {
  const float amax = float_of(largest);
  if (largest >= kInfinity) return {float_of(kNotANumber), 0.0f};
  if (amax < 0x1p-100f) return {0.0f, 0.0f};
  return {div_rn(amax, 127.0f), div_rn(127.0f, amax)};
}

CANDOR_DEVICE int32_t code_of(float x, float inverse) {
  return inverse == 0.0f ? 0 : to_int_rn(mul_rn(x, inverse));
}

CANDOR_DEVICE uint32_t magnitude_of(float x) {
  return bits_of(x) & kMagnitude;
}

CANDOR_DEVICE uint32_t greater(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// Of the n_lanes (a power of two) that a lane is among.
CANDOR_DEVICE uint32_t largest_of_lanes(uint32_t value, uint32_t n_lanes) {
  for (uint32_t mask = n_lanes / 2; mask > 0; mask /= 2) value = greater(value, shuffle_xor(value, mask));
  return value;
}
CANDOR_DEVICE int32_t sum_of_lanes(int32_t value, uint32_t n_lanes) {
  for (uint32_t mask = n_lanes / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

struct EncodeRow {
  const float* src;
  std::byte* dst;
};
CANDOR_DEVICE EncodeRow find_row(const EncodeArgs& args) {
  const int64_t row = block_x();
  const int64_t from = args.src_rows == nullptr ? row : args.src_rows[row];
  return {args.src + from * args.stride, args.dst + row * args.row_bytes};
}

// A warp takes 256 elements, a lane 8 of them; groups are of 8 n_lanes elements, sums of 8 n_sum_lanes.
CANDOR_DEVICE void encode_groups(const EncodeArgs& args, uint32_t n_lanes, uint32_t n_sum_lanes) {
  const EncodeRow row = find_row(args);
  const int64_t first = (static_cast<int64_t>(block_y()) * n_warps() + warp()) * kCodesOfWarp + lane() * kCodesOfLane;
  const bool is_inside = first < args.n;
  float x[kCodesOfLane] = {};
  uint32_t largest = 0;
  CANDOR_UNROLL
  for (int32_t i = 0; i < kCodesOfLane; ++i) {
    if (is_inside) x[i] = row.src[first + i];
    largest = greater(largest, magnitude_of(x[i]));
  }
  const GroupScale group = group_scale_of(largest_of_lanes(largest, n_lanes));
  uint64_t codes = 0;
  int32_t sum = 0;
  CANDOR_UNROLL
  for (int32_t i = 0; i < kCodesOfLane; ++i) {
    const int32_t code = code_of(x[i], group.inverse);
    codes |= static_cast<uint64_t>(static_cast<uint8_t>(code)) << (8 * i);
    sum += code;
  }
  sum = sum_of_lanes(sum, n_sum_lanes);
  if (!is_inside) return;
  const int64_t eight = first / kCodesOfLane;
  reinterpret_cast<uint64_t*>(row.dst)[eight] = codes;
  if (eight % n_sum_lanes == 0) {
    reinterpret_cast<int16_t*>(row.dst + args.sums_at)[eight / n_sum_lanes] = static_cast<int16_t>(sum);
  }
  if (eight % n_lanes == 0) reinterpret_cast<float*>(row.dst + args.scales_at)[eight / n_lanes] = group.scale;
}

// What all warps of the block have. results: [n_warps()].
CANDOR_DEVICE uint32_t largest_of_block(uint32_t value, Shared<uint32_t> results) {
  value = largest_of_lanes(value, 32);
  if (lane() == 0) results[warp()] = value;
  sync_block();
  for (uint32_t i = 0; i < n_warps(); ++i) value = greater(value, results[i]);
  return value;
}
CANDOR_DEVICE int32_t sum_of_block(int32_t value, Shared<int32_t> results) {
  value = sum_of_lanes(value, 32);
  if (lane() == 0) results[warp()] = value;
  sync_block();
  int32_t sum = 0;
  for (uint32_t i = 0; i < n_warps(); ++i) sum += results[i];
  return sum;
}

}  // namespace

CANDOR_KERNEL(encode_f32, EncodeArgs) {
  const EncodeRow row = find_row(args);
  const int64_t i = static_cast<int64_t>(block_y()) * n_threads() + thread();
  if (i < args.n) reinterpret_cast<float*>(row.dst)[i] = row.src[i];
}

// The rounded values, and again as halves, with zeros up to a multiple of 16.
CANDOR_KERNEL(encode_bf16, EncodeArgs) {
  const EncodeRow row = find_row(args);
  const int64_t i = static_cast<int64_t>(block_y()) * n_threads() + thread();
  if (i >= (args.n + 15) / 16 * 16) return;
  const uint16_t half = i < args.n ? float_to_bf16(row.src[i]) : uint16_t{0};
  reinterpret_cast<uint16_t*>(row.dst + args.halves_at)[i] = half;
  if (i < args.n) reinterpret_cast<float*>(row.dst)[i] = bf16_to_float(half);
}

CANDOR_KERNEL(encode_q8x256, EncodeArgs) {
  encode_groups(args, 32, 2);
}

CANDOR_KERNEL(encode_q8x32, EncodeArgs) {
  encode_groups(args, 4, 4);
}

// The whole row as one group, by one block of threads; zeros up to a multiple of 64.
CANDOR_KERNEL(encode_q8row, EncodeArgs) {
  const EncodeRow row = find_row(args);
  uint32_t largest = 0;
  for (int64_t i = thread(); i < args.n; i += n_threads()) largest = greater(largest, magnitude_of(row.src[i]));
  const GroupScale group = group_scale_of(largest_of_block(largest, shared<uint32_t>(0)));
  auto* codes = reinterpret_cast<int8_t*>(row.dst);
  int32_t sum = 0;
  for (int64_t i = thread(); i < args.sums_at; i += n_threads()) {
    const int32_t code = i < args.n ? code_of(row.src[i], group.inverse) : 0;
    codes[i] = static_cast<int8_t>(code);
    sum += code;
  }
  sum = sum_of_block(sum, shared<int32_t>(n_warps() * sizeof(uint32_t)));
  if (thread() != 0) return;
  *reinterpret_cast<int32_t*>(row.dst + args.sums_at) = sum;
  *reinterpret_cast<float*>(row.dst + args.scales_at) = group.scale;
}

}  // namespace candor::backend::cuda
