#include "kernels/packed_weight.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/half.h"
#include "kernels/interleave.h"
#include "kernels/packed_format.h"
#include "kernels/packed_grid.h"
#include "kernels/row_unit.h"
#include "tensor/quant/block_format.h"
#include "tensor/quant/fp4.h"
#include "tensor/quant/fp8.h"
#include "tensor/quant/w8a8.h"

namespace candor::kernels {

namespace {

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

bool is_scaled_rows(DType dtype) {
  return family_of(dtype) == KernelFamily::kScaledRows;
}

bool is_float_blocks(DType dtype) {
  return family_of(dtype) == KernelFamily::kFloatBlocks;
}

bool is_grid(DType dtype) {
  return family_of(dtype) == KernelFamily::kGrids;
}

int64_t row_bytes(const WeightShape& shape) {
  return static_cast<int64_t>(candor::row_bytes(dtype_info(shape.dtype), shape.n_in));
}

size_t raw_panel_bytes(const WeightShape& shape) {
  if (is_float(shape.dtype)) {
    const int64_t padded = shape.dtype == DType::kBF16 ? round_up<int64_t>(shape.n_in, 2) : shape.n_in;
    return static_cast<size_t>(padded * kPanelRows * dtype_info(shape.dtype).block_bytes);
  }
  if (is_scaled_rows(shape.dtype)) {
    return kScaledRowsHeader + static_cast<size_t>(kPanelRows * scaled_rows_depth(shape.n_in));
  }
  if (is_float_blocks(shape.dtype)) {
    return static_cast<size_t>(shape.n_in / kFloatBlockDepth) * float_block_format(shape.dtype).unit_bytes();
  }
  if (is_grid(shape.dtype)) {
    return static_cast<size_t>(shape.n_in / kUnit) * grid_unit_bytes(grid_format_of(shape.dtype));
  }
  const PackedFormat& format = *find_packed_format(shape.dtype);
  const int tail = static_cast<int>(shape.n_in % kUnit);
  const size_t whole = static_cast<size_t>(shape.n_in / kUnit) * unit_bytes(format, kUnit);
  return whole + (tail == 0 ? 0 : unit_bytes(format, tail));
}

// BF16 come in pairs, so that what lies together is 4 bytes of F32 and BF16, 2 of F16.
void pack_float_panel(const WeightShape& shape, const std::byte* src, int64_t first_row, std::byte* dst) {
  const auto n_rows = static_cast<size_t>(std::min<int64_t>(kPanelRows, shape.n_out - first_row));
  const auto stride = static_cast<size_t>(row_bytes(shape));
  const size_t unit = shape.dtype == DType::kF16 ? 2 : 4;
  const size_t n_units = stride / unit;
  src += static_cast<size_t>(first_row) * stride;
  const auto copy_unit = [&](size_t row, size_t i, size_t n_bytes) {
    std::memcpy(dst + (i * kPanelRows + row) * unit, src + row * stride + i * unit, n_bytes);
  };
  const bool is_full = n_rows == kPanelRows;
  if (is_full) (unit == 4 ? interleave_words : interleave_halves)(src, stride, n_units, dst);
  for (size_t row = 0; row < n_rows; ++row) {
    for (size_t i = is_full ? n_units : 0; i < n_units; ++i) copy_unit(row, i, unit);
    if (stride % unit != 0) copy_unit(row, n_units, stride % unit);
  }
}

void pack_block_panel(const WeightShape& shape, const std::byte* src, int64_t first_row, std::byte* dst) {
  const PackedFormat& format = *find_packed_format(shape.dtype);
  const int64_t n_rows = std::min<int64_t>(kPanelRows, shape.n_out - first_row);
  const int64_t stride = row_bytes(shape);
  const DTypeInfo& info = dtype_info(shape.dtype);
  const RowParser parse = row_parser_of(shape.dtype);
  RowUnit rows[kPanelRows]{};
  for (int64_t k = 0; k < shape.n_in; k += kUnit) {
    const int n_k = static_cast<int>(std::min<int64_t>(kUnit, shape.n_in - k));
    for (int64_t r = 0; r < n_rows; ++r) {
      const std::byte* blocks = src + (first_row + r) * stride + k / info.block_elements * info.block_bytes;
      parse(blocks, n_k, rows[r]);
    }
    write_unit(format, rows, n_k, dst);
    dst += unit_bytes(format, n_k);
  }
}

// Rows that the panel lacks stay zeros, as do the k past n_in, whose activations are zeros.
void pack_scaled_rows(const WeightShape& shape, const std::byte* src, int64_t first_row, std::byte* dst) {
  const int64_t n_rows = std::min<int64_t>(kPanelRows, shape.n_out - first_row);
  const int64_t stride = row_bytes(shape);
  std::byte* codes = dst + kScaledRowsHeader;
  for (int64_t r = 0; r < n_rows; ++r) {
    const std::byte* row = src + (first_row + r) * stride;
    std::memcpy(dst + 4 * r, row, sizeof(float));
    row += sizeof(float);
    for (int64_t k = 0; k < shape.n_in; k += 4) {
      uint32_t four;
      std::memcpy(&four, row + k, sizeof four);
      four ^= 0x80808080u;
      std::memcpy(codes + kPanelRows * k + 4 * r, &four, sizeof four);
    }
  }
}

void decode_scaled_row(const WeightShape& shape, const std::byte* panel, int64_t lane, float* dst) {
  float d;
  std::memcpy(&d, panel + 4 * lane, sizeof d);
  const auto* codes = reinterpret_cast<const uint8_t*>(panel + kScaledRowsHeader);
  for (int64_t k = 0; k < shape.n_in; ++k) {
    dst[k] = d * static_cast<float>(codes[kPanelRows * (k / 4 * 4) + 4 * lane + k % 4] - 128);
  }
}

// Rows that the panel lacks stay zeros.
template <class Block>
void pack_float_blocks(const WeightShape& shape, const std::byte* src, int64_t first_row, std::byte* dst) {
  constexpr FloatBlockFormat kFormat = float_block_format(Block::kType);
  const int64_t n_rows = std::min<int64_t>(kPanelRows, shape.n_out - first_row);
  const auto stride = static_cast<size_t>(row_bytes(shape));
  src += static_cast<size_t>(first_row) * stride;
  for (int64_t k = 0; k < shape.n_in; k += kFloatBlockDepth, src += sizeof(Block), dst += kFormat.unit_bytes()) {
    const bool is_interleaved = kFormat.pair_bytes == 2 && n_rows == kPanelRows;
    if (is_interleaved) {
      interleave_halves(src + offsetof(Block, qs), stride, sizeof(Block::qs) / 2, dst + kFormat.codes_at);
    }
    for (size_t r = 0; r < static_cast<size_t>(n_rows); ++r) {
      Block block;
      std::memcpy(&block, src + r * stride, sizeof block);
      const float d = block.d * quant::kE4M3Scale;
      std::memcpy(dst + sizeof d * r, &d, sizeof d);
      const auto* codes = reinterpret_cast<const std::byte*>(block.qs);
      for (size_t i = 0; !is_interleaved && i < sizeof block.qs / kFormat.pair_bytes; ++i) {
        std::memcpy(dst + kFormat.codes_at + kFormat.pair_bytes * (i * kPanelRows + r), codes + kFormat.pair_bytes * i,
                    kFormat.pair_bytes);
      }
      if constexpr (Block::kType == DType::kFP4) {
        for (size_t g = 0; g < sizeof block.scales; ++g) {
          dst[kFp4ScalesAt + kPanelRows * g + r] = static_cast<std::byte>(block.scales[g]);
        }
      }
    }
  }
}

template <class Block>
void decode_float_blocks(const WeightShape& shape, const std::byte* panel, int64_t lane, float* dst) {
  constexpr FloatBlockFormat kFormat = float_block_format(Block::kType);
  const auto r = static_cast<size_t>(lane);
  for (int64_t k = 0; k < shape.n_in; k += kFloatBlockDepth, panel += kFormat.unit_bytes()) {
    Block block;
    float d;
    std::memcpy(&d, panel + sizeof d * r, sizeof d);
    block.d = d / quant::kE4M3Scale;
    for (size_t i = 0; i < sizeof block.qs / kFormat.pair_bytes; ++i) {
      std::memcpy(block.qs + kFormat.pair_bytes * i,
                  panel + kFormat.codes_at + kFormat.pair_bytes * (i * kPanelRows + r), kFormat.pair_bytes);
    }
    if constexpr (Block::kType == DType::kFP4) {
      for (size_t g = 0; g < sizeof block.scales; ++g) {
        block.scales[g] = static_cast<uint8_t>(panel[kFp4ScalesAt + kPanelRows * g + r]);
      }
    }
    decode_block(block, dst + k);
  }
}

float float_weight(const WeightShape& shape, const std::byte* panel, int64_t row, int64_t k) {
  if (shape.dtype == DType::kF32) {
    float value;
    std::memcpy(&value, panel + (k * kPanelRows + row) * 4, 4);
    return value;
  }
  uint16_t half;
  const bool paired = shape.dtype == DType::kBF16;
  const int64_t at = paired ? (k / 2 * kPanelRows + row) * 2 + k % 2 : k * kPanelRows + row;
  std::memcpy(&half, panel + at * 2, 2);
  return paired ? bf16_to_f32(half) : f16_to_f32(half);
}

}  // namespace

bool can_pack(const WeightShape& shape) {
  if (!dtype_info(shape.dtype).is_weight) return false;
  if (shape.n_out <= 0 || shape.n_in <= 0 || shape.n_in % dtype_info(shape.dtype).block_elements != 0) return false;
  if (is_scaled_rows(shape.dtype) && shape.n_in > quant::kMostW8A8Elements) return false;
  constexpr int64_t kLargest = int64_t{1} << 31;  // keeps every size below far from overflow
  return shape.n_out < kLargest && shape.n_in < kLargest / 256;
}

int64_t n_panels(const WeightShape& shape) {
  return ceil_div<int64_t>(shape.n_out, kPanelRows);
}

size_t panel_bytes(const WeightShape& shape) {
  return round_up(raw_panel_bytes(shape), kPackedAlignment);
}

size_t packed_bytes(const WeightShape& shape) {
  return static_cast<size_t>(n_panels(shape)) * panel_bytes(shape);
}

Encoding encoding_of(DType dtype) {
  if (dtype == DType::kBF16 || is_float_blocks(dtype)) return Encoding::kBf16;
  if (is_float(dtype)) return Encoding::kF32;
  if (is_scaled_rows(dtype)) return Encoding::kQ8Row;
  if (is_grid(dtype)) return Encoding::kQ8x256;
  return find_packed_format(dtype)->is_super ? Encoding::kQ8x256 : Encoding::kQ8x32;
}

void pack_panels(const WeightShape& shape, const std::byte* src, int64_t panel_begin, int64_t panel_end,
                 std::byte* dst) {
  const size_t bytes = panel_bytes(shape);
  const auto pack = is_float(shape.dtype)         ? pack_float_panel
                    : is_scaled_rows(shape.dtype) ? pack_scaled_rows
                    : shape.dtype == DType::kFP8  ? pack_float_blocks<quant::BlockFP8>
                    : shape.dtype == DType::kFP4  ? pack_float_blocks<quant::BlockFP4>
                    : is_grid(shape.dtype)        ? pack_grid_panel
                                                  : pack_block_panel;
  for (int64_t p = panel_begin; p < panel_end; ++p) {
    std::byte* panel = dst + static_cast<size_t>(p) * bytes;
    const bool is_last = (p + 1) * kPanelRows > shape.n_out;
    const bool is_padded = bytes != raw_panel_bytes(shape) || shape.n_in % 2 != 0 ||
                           (is_scaled_rows(shape.dtype) && shape.n_in % kScaledRowsStep != 0);
    if (is_last || is_padded) std::memset(panel, 0, bytes);
    pack(shape, src, p * kPanelRows, panel);
  }
}

void decode_packed_row(const WeightShape& shape, const std::byte* packed, int64_t row, float* dst) {
  const std::byte* panel = packed + static_cast<size_t>(row / kPanelRows) * panel_bytes(shape);
  const int64_t lane = row % kPanelRows;
  if (is_float(shape.dtype)) {
    for (int64_t k = 0; k < shape.n_in; ++k) dst[k] = float_weight(shape, panel, lane, k);
    return;
  }
  if (is_scaled_rows(shape.dtype)) return decode_scaled_row(shape, panel, lane, dst);
  if (shape.dtype == DType::kFP8) return decode_float_blocks<quant::BlockFP8>(shape, panel, lane, dst);
  if (shape.dtype == DType::kFP4) return decode_float_blocks<quant::BlockFP4>(shape, panel, lane, dst);
  if (is_grid(shape.dtype)) return decode_grid_row(shape, panel, lane, dst);
  const PackedFormat& format = *find_packed_format(shape.dtype);
  RowUnit unit{};
  for (int64_t k = 0; k < shape.n_in; k += kUnit) {
    const int n_k = static_cast<int>(std::min<int64_t>(kUnit, shape.n_in - k));
    read_unit(format, panel, n_k, static_cast<int>(lane), unit);
    decode_row_unit(format, unit, n_k, dst + k);
    panel += unit_bytes(format, n_k);
  }
}

size_t encoded_row_bytes(Encoding encoding, int64_t n_in) {
  if (encoding == Encoding::kF32 || encoding == Encoding::kBf16) {
    const size_t halves = encoding == Encoding::kBf16 ? round_up<size_t>(static_cast<size_t>(n_in) * 2, 64) : 0;
    // One line more: rows a power of two apart would fall into the same few sets of a cache.
    return encoded_halves_offset(n_in) + halves + 64;
  }
  if (encoding == Encoding::kQ8Row) return encoded_sums_offset(encoding, n_in) + 64;
  const int64_t group = encoding == Encoding::kQ8x256 ? 256 : 32;
  return encoded_scales_offset(encoding, n_in) + round_up<size_t>(static_cast<size_t>(ceil_div(n_in, group)) * 4, 64);
}

size_t encoded_sums_offset(Encoding encoding, int64_t n_in) {
  if (encoding == Encoding::kF32 || encoding == Encoding::kBf16) return 0;
  return round_up<size_t>(static_cast<size_t>(n_in), 64);
}

size_t encoded_scales_offset(Encoding encoding, int64_t n_in) {
  if (encoding == Encoding::kF32 || encoding == Encoding::kBf16) return 0;
  if (encoding == Encoding::kQ8Row) return encoded_sums_offset(encoding, n_in) + sizeof(int32_t);
  const int64_t group = encoding == Encoding::kQ8x256 ? 16 : 32;
  const auto sums = static_cast<size_t>(ceil_div(n_in, group)) * 2;
  return encoded_sums_offset(encoding, n_in) + round_up<size_t>(sums, 64);
}

size_t encoded_halves_offset(int64_t n_in) {
  return round_up<size_t>(static_cast<size_t>(n_in) * 4, 64);
}

}  // namespace candor::kernels
