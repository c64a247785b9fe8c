#include "kernels/packed_grid.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace candor::kernels {

namespace {

constexpr auto kRows = static_cast<int>(kPanelRows);

uint8_t u8(int value) {
  return static_cast<uint8_t>(value);
}

// Where the sign of weight k of a row stands: a byte and its bit.
struct SignPlace {
  int byte = 0;
  int bit = 0;
};
SignPlace sign_place(int k, int row) {
  return {64 * (k / 32) + 4 * row + k % 4, k % 32 / 4};
}

// Of index i of a row.
int low_place(int i, int row) {
  return 2 * (kRows * (i / 2) + row) + i % 2;
}

// Bytes of sub-scales: 4 or 8.
int half_groups(const GridFormat& f) {
  return f.n_groups == 16 ? 8 : 4;
}

// Four bits, each the lowest of a byte.
uint32_t spread(uint32_t bits) {
  return (bits * 0x00204081u) & 0x01010101u;
}

// What 32 k of a row have in the plane of signs. signs: [4].
uint32_t sign_word(const uint8_t* signs) {
  uint32_t word = 0;
  for (int q = 0; q < 4; ++q) {
    word |= spread(signs[q] & 15u) << (2 * q) | spread(signs[q] >> 4) << (2 * q + 1);
  }
  return word;
}

// dst: the unit, zeros where this row stands.
void write_row(const GridFormat& f, const GridCodes& codes, int row, uint8_t* dst) {
  std::memcpy(dst + 2 * row, &codes.d, 2);
  const int half = half_groups(f);
  uint8_t* scales = dst + grid_scales_at(f);
  for (int i = 0; i < half; ++i) scales[kRows * i + row] = u8(codes.scales[i] | (codes.scales[i + half] << 4));
  uint8_t* low = dst + grid_indices_at(f);
  uint8_t* high = dst + grid_high_bits_at(f);
  const int n_high = f.index_bits - 8;
  for (int i = 0; i < n_indices(f); ++i) {
    low[low_place(i, row)] = u8(codes.index[i] & 255);
    if (n_high == 0) continue;
    uint8_t& byte = high[kRows * (i * n_high / 8) + row];
    byte = u8(byte | ((codes.index[i] >> 8) << (i * n_high % 8)));
  }
  uint8_t* signs = dst + grid_signs_at(f);
  for (int b = 0; f.sign_bits > 0 && b < kUnit / 32; ++b) {
    const uint32_t word = sign_word(codes.signs + 4 * b);
    std::memcpy(signs + 64 * b + 4 * row, &word, sizeof word);
  }
}

void read_row(const GridFormat& f, const uint8_t* src, int row, GridCodes& codes) {
  codes = GridCodes{};
  std::memcpy(&codes.d, src + 2 * row, 2);
  const int half = half_groups(f);
  const uint8_t* scales = src + grid_scales_at(f);
  for (int i = 0; i < half; ++i) {
    codes.scales[i] = scales[kRows * i + row] & 15;
    codes.scales[i + half] = scales[kRows * i + row] >> 4;
  }
  const uint8_t* low = src + grid_indices_at(f);
  const uint8_t* high = src + grid_high_bits_at(f);
  const int n_high = f.index_bits - 8;
  for (int i = 0; i < n_indices(f); ++i) {
    int index = low[low_place(i, row)];
    if (n_high > 0) {
      index |= ((high[kRows * (i * n_high / 8) + row] >> (i * n_high % 8)) & ((1 << n_high) - 1)) << 8;
    }
    codes.index[i] = static_cast<uint16_t>(index);
  }
  const uint8_t* signs = src + grid_signs_at(f);
  for (int k = 0; f.sign_bits > 0 && k < kUnit; ++k) {
    const SignPlace at = sign_place(k, row);
    codes.signs[k / 8] = u8(codes.signs[k / 8] | (((signs[at.byte] >> at.bit) & 1) << (k % 8)));
  }
}

using Parse = void (*)(const std::byte* block, GridCodes& codes);

Parse parser_of(DType dtype) {
  Parse parser = nullptr;
  with_block(dtype, [&]<class Block>(BlockType<Block>) {
    if constexpr (quant::IsGrid<Block>) {
      parser = [](const std::byte* src, GridCodes& codes) {
        Block block;
        std::memcpy(&block, src, sizeof block);
        parse_grid(block, codes);
      };
    }
  });
  return parser;
}

}  // namespace

void pack_grid_panel(const WeightShape& shape, const std::byte* src, int64_t first_row, std::byte* dst) {
  const GridFormat format = grid_format_of(shape.dtype);
  const Parse parse = parser_of(shape.dtype);
  const auto n_rows = static_cast<int>(std::min<int64_t>(kPanelRows, shape.n_out - first_row));
  const DTypeInfo& info = dtype_info(shape.dtype);
  const size_t stride = row_bytes(info, shape.n_in);
  src += static_cast<size_t>(first_row) * stride;
  for (int64_t k = 0; k < shape.n_in; k += kUnit, src += info.block_bytes, dst += grid_unit_bytes(format)) {
    std::memset(dst, 0, grid_unit_bytes(format));
    for (int r = 0; r < n_rows; ++r) {
      GridCodes codes{};
      parse(src + static_cast<size_t>(r) * stride, codes);
      write_row(format, codes, r, reinterpret_cast<uint8_t*>(dst));
    }
  }
}

void decode_grid_row(const WeightShape& shape, const std::byte* panel, int64_t row, float* dst) {
  const GridFormat format = grid_format_of(shape.dtype);
  GridCodes codes{};
  for (int64_t k = 0; k < shape.n_in; k += kUnit, panel += grid_unit_bytes(format)) {
    read_row(format, reinterpret_cast<const uint8_t*>(panel), static_cast<int>(row), codes);
    quant::decode_grid(format, codes, dst + k);
  }
}

}  // namespace candor::kernels
