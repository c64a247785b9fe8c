#include "kernels/row_unit.h"

#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "kernels/packed_weight.h"
#include "tensor/quant/iq4.h"
#include "tensor/quant/mxfp4.h"
#include "tensor/quant/q4_k_fast.h"
#include "tensor/weight_formats.h"

namespace candor::kernels {

namespace {

uint8_t u8(int value) {
  return static_cast<uint8_t>(value);
}

template <class Block>
void parse_all(const std::byte* blocks, int n_k, RowUnit& dst) {
  for (int b = 0; b < n_k / Block::kElements; ++b) {
    Block block;
    std::memcpy(&block, blocks + static_cast<size_t>(b) * sizeof(Block), sizeof(Block));
    quant::parse_block(block, dst, b);
  }
}

// Bits [shift, shift + bits) of the codes of 16 rows, as a bit plane.
template <int bits>
void write_plane(const RowUnit* rows, int n_k, int shift, uint8_t* dst) {
  constexpr int kPer = 8 / bits;
  constexpr uint32_t kMask = 0x01010101u * ((1u << bits) - 1u);
  for (int r = 0; r < kPanelRows; ++r) {
    const uint8_t* codes = rows[r].codes;
    for (int v = 0; v < n_k / 4 / kPer; ++v) {
      uint32_t word = 0;
      for (int s = 0; s < kPer; ++s) {
        uint32_t four;
        std::memcpy(&four, codes + 4 * (kPer * v + s), sizeof four);
        word |= ((four >> shift) & kMask) << (bits * s);
      }
      std::memcpy(dst + 64 * v + 4 * r, &word, sizeof word);
    }
  }
}

void write_plane(int bits, const RowUnit* rows, int n_k, int shift, uint8_t* dst) {
  switch (bits) {
    case 1:
      return write_plane<1>(rows, n_k, shift, dst);
    case 2:
      return write_plane<2>(rows, n_k, shift, dst);
    case 4:
      return write_plane<4>(rows, n_k, shift, dst);
    case 8:
      return write_plane<8>(rows, n_k, shift, dst);
    default:
      return;
  }
}

// The inverse, for one row: or-ed into codes at bit `shift`.
void read_plane(int bits, const uint8_t* src, int row, int n_k, int shift, uint8_t* codes) {
  if (bits == 0) return;
  const int per = 8 / bits;
  const uint32_t mask = 0x01010101u * ((1u << bits) - 1u);
  for (int group = 0; group < n_k / 4; ++group) {
    uint32_t word;
    uint32_t four;
    std::memcpy(&word, src + 64 * (group / per) + 4 * row, sizeof word);
    std::memcpy(&four, codes + 4 * group, sizeof four);
    four |= ((word >> (bits * (group % per))) & mask) << shift;
    std::memcpy(codes + 4 * group, &four, sizeof four);
  }
}

// The sub-scale bytes of one row, [format.scale_bytes].
void pack_scales(const PackedFormat& format, const RowUnit& row, uint8_t* dst) {
  const uint8_t* s = row.scales;
  const uint8_t* m = row.mins;
  switch (format.sub_scales) {
    case SubScales::kNibbles:
      for (int i = 0; i < 16; ++i) dst[i] = u8(s[i] | (m[i] << 4));
      return;
    case SubScales::kSixBitsOf16:
      for (int i = 0; i < 8; ++i) dst[i] = u8((s[i] & 15) | ((s[i + 8] & 15) << 4));
      for (int i = 0; i < 4; ++i) {
        dst[8 + i] = u8((s[i] >> 4) | (s[i + 4] >> 4 << 2) | (s[i + 8] >> 4 << 4) | (s[i + 12] >> 4 << 6));
      }
      return;
    case SubScales::kSixBitsOf8:
      for (int i = 0; i < 4; ++i) dst[i] = u8((s[i] & 15) | ((s[i + 4] & 15) << 4));
      for (int i = 0; i < 2; ++i) {
        dst[4 + i] = u8((s[i] >> 4) | (s[i + 2] >> 4 << 2) | (s[i + 4] >> 4 << 4) | (s[i + 6] >> 4 << 6));
      }
      return;
    case SubScales::kMultipliers:
      std::memcpy(dst, s, 8);
      std::memcpy(dst + 8, m, 8);
      return;
    case SubScales::kSixBitPairs:
      for (int i = 0; i < 8; ++i) dst[i] = u8(s[i] | (m[i] >> 4 << 6));
      for (int i = 0; i < 4; ++i) dst[8 + i] = u8((m[i] & 15) | ((m[i + 4] & 15) << 4));
      return;
    case SubScales::kBytes:
      std::memcpy(dst, s, static_cast<size_t>(format.scale_bytes));
      return;
    case SubScales::kNone:
    case SubScales::kOnes:
      return;
  }
}

// The inverse, for one row of the panel's bytes.
void read_scales(const PackedFormat& format, const uint8_t* bytes, int row, RowUnit& dst) {
  const auto at = [&](int i) { return static_cast<int>(bytes[scale_byte_at(format, i, row)]); };
  for (int j = 0; j < format.n_groups; ++j) {
    switch (format.sub_scales) {
      case SubScales::kNibbles:
        dst.scales[j] = u8(at(j) & 15);
        dst.mins[j] = u8(at(j) >> 4);
        break;
      case SubScales::kSixBitsOf16:
        dst.scales[j] = u8(((at(j % 8) >> (j / 8 * 4)) & 15) | (((at(8 + j % 4) >> (j / 4 * 2)) & 3) << 4));
        break;
      case SubScales::kSixBitsOf8:
        dst.scales[j] = u8(((at(j % 4) >> (j / 4 * 4)) & 15) | (((at(4 + j % 2) >> (j / 2 * 2)) & 3) << 4));
        break;
      case SubScales::kMultipliers:
        dst.scales[j] = u8(at(j));
        dst.mins[j] = u8(at(8 + j));
        break;
      case SubScales::kSixBitPairs:
        dst.scales[j] = u8(at(j) & 63);
        dst.mins[j] = u8(((at(8 + j % 4) >> (j / 4 * 4)) & 15) | (at(j) >> 6 << 4));
        break;
      case SubScales::kBytes:
        dst.scales[j] = u8(at(j));
        break;
      case SubScales::kOnes:
        dst.scales[j] = 1;
        break;
      case SubScales::kNone:
        break;
    }
  }
}

void write_header(const PackedFormat& format, const RowUnit* rows, int n_k, uint8_t* dst) {
  const int n_d = format.is_super ? 1 : n_k / 32;
  const auto d_bytes = static_cast<size_t>(format.d_bytes);
  const bool is_byte = has_exponents(format);
  for (int r = 0; r < kPanelRows; ++r) {
    for (int b = 0; b < n_d; ++b) {
      const int at = b * kPanelRows + r;
      if (is_byte) {
        dst[at] = u8(rows[r].d[b]);
      } else {
        std::memcpy(dst + d_bytes * static_cast<size_t>(at), &rows[r].d[b], d_bytes);
      }
      if (format.has_min) std::memcpy(dst + 2 * (n_d * kPanelRows + at), &rows[r].m[b], 2);
    }
    if (!format.is_super) continue;
    uint8_t* scales = dst + scales_offset(format);
    uint8_t packed[16] = {};
    pack_scales(format, rows[r], packed);
    for (int i = 0; i < format.scale_bytes; ++i) scales[scale_byte_at(format, i, r)] = packed[i];
  }
}

void read_header(const PackedFormat& format, const uint8_t* src, int n_k, int row, RowUnit& dst) {
  const int n_d = format.is_super ? 1 : n_k / 32;
  const auto d_bytes = static_cast<size_t>(format.d_bytes);
  for (int b = 0; b < n_d; ++b) {
    const int at = b * kPanelRows + row;
    if (has_exponents(format)) {
      dst.d[b] = src[at];
    } else {
      std::memcpy(&dst.d[b], src + d_bytes * static_cast<size_t>(at), d_bytes);
    }
    if (format.has_min) std::memcpy(&dst.m[b], src + 2 * (n_d * kPanelRows + at), 2);
  }
  if (format.is_super) read_scales(format, src + scales_offset(format), row, dst);
}

int weight_of(const PackedFormat& format, uint8_t code) {
  if (format.values == CodeValues::kFp4) return quant::kFp4TwiceValues[code];
  if (format.values == CodeValues::kIq4) return quant::kIq4Values[code];
  if (format.values == CodeValues::kSigns) return 2 * code - 1;
  return code - format.offset;
}

int sub_scale_of(const PackedFormat& format, uint8_t raw) {
  switch (format.sub_scales) {
    case SubScales::kBytes:
      return static_cast<int8_t>(raw);
    case SubScales::kSixBitsOf8:
    case SubScales::kSixBitsOf16:
      return raw - 32;
    default:
      return raw;
  }
}

void decode_rebased(const RowUnit& unit, float* dst) {
  float d;
  std::memcpy(&d, unit.d, sizeof d);
  for (int k = 0; k < kUnit; ++k) {
    const int w = quant::rebased_weight(unit.codes[k ^ 1], unit.scales[k / 32], static_cast<int8_t>(unit.mins[k / 32]));
    dst[k] = d * static_cast<float>(w);
  }
}

}  // namespace

RowParser row_parser_of(DType dtype) {
  RowParser parser = nullptr;
  with_block(dtype, [&]<class Block>(BlockType<Block>) {
    if constexpr (kHasPackedFormat<Block>) parser = parse_all<Block>;
  });
  return parser;
}

void write_unit(const PackedFormat& format, const RowUnit* rows, int n_k, std::byte* dst) {
  auto* bytes = reinterpret_cast<uint8_t*>(dst);
  write_header(format, rows, n_k, bytes);
  uint8_t* codes = bytes + unit_header_bytes(format, n_k);
  write_plane(format.low_bits, rows, n_k, 0, codes);
  write_plane(format.high_bits, rows, n_k, format.low_bits, codes + low_plane_bytes(format, n_k));
}

void read_unit(const PackedFormat& format, const std::byte* src, int n_k, int row, RowUnit& dst) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(src);
  read_header(format, bytes, n_k, row, dst);
  const uint8_t* low = bytes + unit_header_bytes(format, n_k);
  const uint8_t* high = low + low_plane_bytes(format, n_k);
  std::memset(dst.codes, 0, static_cast<size_t>(n_k));
  read_plane(format.low_bits, low, row, n_k, 0, dst.codes);
  read_plane(format.high_bits, high, row, n_k, format.low_bits, dst.codes);
}

void decode_row_unit(const PackedFormat& format, const RowUnit& unit, int n_k, float* dst) {
  if (format.values == CodeValues::kRebased) return decode_rebased(unit, dst);
  const int group = format.is_super ? kUnit / format.n_groups : 32;
  for (int k = 0; k < n_k; ++k) {
    const int j = k / group;
    const auto weight = static_cast<float>(weight_of(format, unit.codes[k]));
    if (format.is_super) {
      const float value = (f16_to_f32(unit.d[0]) * static_cast<float>(sub_scale_of(format, unit.scales[j]))) * weight;
      dst[k] = format.has_min ? value - f16_to_f32(unit.m[0]) * static_cast<float>(unit.mins[j]) : value;
      continue;
    }
    const float d = has_exponents(format) ? quant::half_e8m0(static_cast<uint8_t>(unit.d[j])) : f16_to_f32(unit.d[j]);
    dst[k] = format.has_min ? d * weight + f16_to_f32(unit.m[j]) : d * weight;
  }
}

}  // namespace candor::kernels
