#include "kernels/row_unit.h"

#include <algorithm>
#include <cstring>

#include "tensor/quant/iq4.h"
#include "tensor/quant/mxfp4.h"
#include "tensor/quant/q2_k.h"
#include "tensor/quant/q3_k.h"
#include "tensor/quant/q4_0.h"
#include "tensor/quant/q4_1.h"
#include "tensor/quant/q4_k.h"
#include "tensor/quant/q4_k_fast.h"
#include "tensor/quant/q5_0.h"
#include "tensor/quant/q5_1.h"
#include "tensor/quant/q5_k.h"
#include "tensor/quant/q6_k.h"
#include "tensor/quant/q8_0.h"

namespace candor::kernels {

namespace {

using namespace quant;

uint8_t u8(int value) {
  return static_cast<uint8_t>(value);
}

// Eight bytes at a time: packing runs at the speed of memory only if no byte is handled alone.
uint64_t load_word(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}
void store_word(uint8_t* p, uint64_t word) {
  std::memcpy(p, &word, sizeof word);
}
constexpr uint64_t kEachByte = 0x0101010101010101;
constexpr uint64_t kEvenBytes = 0x00ff00ff00ff00ff;

// Bits [from, from + n) of each byte, moved to bit `to`.
constexpr uint64_t byte_fields(uint64_t word, int from, int n, int to) {
  return ((word >> from) & (kEachByte * ((1u << n) - 1u))) << to;
}

// dst[i] = n bits from bit `from` of src[i], for n_bytes (a multiple of 8).
void take_fields(const uint8_t* src, int from, int n, int n_bytes, uint8_t* dst) {
  for (int i = 0; i < n_bytes; i += 8) store_word(dst + i, byte_fields(load_word(src + i), from, n, 0));
}
// dst[i] |= the same at bit `to`.
void add_fields(const uint8_t* src, int from, int n, int to, uint8_t* dst) {
  for (int i = 0; i < 32; i += 8) {
    store_word(dst + i, load_word(dst + i) | byte_fields(load_word(src + i), from, n, to));
  }
}

void parse(const BlockQ2_K& block, RowUnit& dst, int) {
  for (int g = 0; g < 8; ++g) take_fields(block.qs + g / 4 * 32, g % 4 * 2, 2, 32, dst.codes + 32 * g);
  for (int g = 0; g < 16; ++g) {
    dst.scales[g] = low_nibble(block.scales[g]);
    dst.mins[g] = high_nibble(block.scales[g]);
  }
  dst.d[0] = block.d;
  dst.m[0] = block.dmin;
}

void parse(const BlockQ3_K& block, RowUnit& dst, int) {
  for (int g = 0; g < 8; ++g) {
    take_fields(block.qs + g / 4 * 32, g % 4 * 2, 2, 32, dst.codes + 32 * g);
    add_fields(block.hmask, g, 1, 2, dst.codes + 32 * g);
  }
  for (int g = 0; g < 16; ++g) dst.scales[g] = u8(group_scale(block, g) + 32);
  dst.d[0] = block.d;
}

void parse_scale_mins(const uint8_t* packed, RowUnit& dst) {
  for (int g = 0; g < 8; ++g) {
    const ScaleMin entry = unpack_scale_min(packed, g);
    dst.scales[g] = entry.scale;
    dst.mins[g] = entry.min;
  }
}

// 32 bytes hold 64 codes, low nibbles first.
void parse_nibbles_of_256(const uint8_t* qs, uint8_t* codes) {
  for (int g = 0; g < 8; ++g) take_fields(qs + g / 2 * 32, g % 2 * 4, 4, 32, codes + 32 * g);
}

void parse(const BlockQ4_K& block, RowUnit& dst, int) {
  parse_nibbles_of_256(block.qs, dst.codes);
  parse_scale_mins(block.scales, dst);
  dst.d[0] = block.d;
  dst.m[0] = block.dmin;
}

void parse(const BlockQ4_KFast& block, RowUnit& dst, int) {
  parse_nibbles_of_256(block.block.qs, dst.codes);
  for (int k = 0; k < kUnit; k += 8) {
    const uint64_t codes = load_word(dst.codes + k);
    store_word(dst.codes + k, ((codes & kEvenBytes) << 8) | ((codes >> 8) & kEvenBytes));
  }
  const RebasedQ4_K rebased = rebase(block.block);
  std::memcpy(dst.d, &rebased.d, sizeof rebased.d);
  std::memcpy(dst.scales, rebased.a, sizeof rebased.a);
  std::memcpy(dst.mins, rebased.b, sizeof rebased.b);
}

void parse(const BlockQ5_K& block, RowUnit& dst, int) {
  parse_nibbles_of_256(block.qs, dst.codes);
  for (int g = 0; g < 8; ++g) add_fields(block.qh, g, 1, 4, dst.codes + 32 * g);
  parse_scale_mins(block.scales, dst);
  dst.d[0] = block.d;
  dst.m[0] = block.dmin;
}

void parse(const BlockQ6_K& block, RowUnit& dst, int) {
  for (int g = 0; g < 8; ++g) {
    const int h = g / 4;
    const int s = g % 4;
    take_fields(block.ql + 64 * h + 32 * (s % 2), s / 2 * 4, 4, 32, dst.codes + 32 * g);
    add_fields(block.qh + 32 * h, 2 * s, 2, 4, dst.codes + 32 * g);
  }
  std::memcpy(dst.scales, block.scales, 16);
  dst.d[0] = block.d;
}

// 16 bytes hold 32 codes, low nibbles first.
void parse_nibbles_of_32(const uint8_t* qs, uint8_t* codes) {
  take_fields(qs, 0, 4, 16, codes);
  take_fields(qs, 4, 4, 16, codes + 16);
}

void parse(const BlockIQ4_XS& block, RowUnit& dst, int) {
  for (int g = 0; g < 8; ++g) parse_nibbles_of_32(block.qs + 16 * g, dst.codes + 32 * g);
  for (int g = 0; g < 8; ++g) dst.scales[g] = u8(group_scale(block, g) + 32);
  dst.d[0] = block.d;
}

void parse(const BlockQ8_0& block, RowUnit& dst, int b) {
  const auto* codes = reinterpret_cast<const uint8_t*>(block.qs);
  for (int e = 0; e < 32; e += 8) store_word(dst.codes + 32 * b + e, load_word(codes + e) ^ (kEachByte << 7));
  dst.d[b] = block.d;
}

void parse(const BlockQ4_0& block, RowUnit& dst, int b) {
  parse_nibbles_of_32(block.qs, dst.codes + 32 * b);
  dst.d[b] = block.d;
}

void parse(const BlockQ4_1& block, RowUnit& dst, int b) {
  parse_nibbles_of_32(block.qs, dst.codes + 32 * b);
  dst.d[b] = block.d;
  dst.m[b] = block.m;
}

// Bit e of qh is bit 4 of code e.
void add_fifth_bits(uint32_t qh, uint8_t* codes) {
  for (int e = 0; e < 32; e += 8) {
    const uint64_t one_bit_each = (((qh >> e) & 0xffu) * kEachByte) & 0x8040201008040201;
    const uint64_t top_bits = (one_bit_each + kEachByte * 0x7f) & (kEachByte << 7);
    store_word(codes + e, load_word(codes + e) | (top_bits >> 3));
  }
}

void parse(const BlockQ5_0& block, RowUnit& dst, int b) {
  parse_nibbles_of_32(block.qs, dst.codes + 32 * b);
  add_fifth_bits(block.qh, dst.codes + 32 * b);
  dst.d[b] = block.d;
}

void parse(const BlockQ5_1& block, RowUnit& dst, int b) {
  parse_nibbles_of_32(block.qs, dst.codes + 32 * b);
  add_fifth_bits(block.qh, dst.codes + 32 * b);
  dst.d[b] = block.d;
  dst.m[b] = block.m;
}

void parse(const BlockIQ4_NL& block, RowUnit& dst, int b) {
  parse_nibbles_of_32(block.qs, dst.codes + 32 * b);
  dst.d[b] = block.d;
}

void parse(const BlockMXFP4& block, RowUnit& dst, int b) {
  parse_nibbles_of_32(block.qs, dst.codes + 32 * b);
  dst.d[b] = block.e;
}

template <class Block>
void parse_all(const std::byte* blocks, int n_k, RowUnit& dst) {
  for (int b = 0; b < n_k / Block::kElements; ++b) {
    Block block;
    std::memcpy(&block, blocks + static_cast<size_t>(b) * sizeof(Block), sizeof(Block));
    parse(block, dst, b);
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
  switch (format.dtype) {
    case DType::kQ2_K:
      for (int i = 0; i < 16; ++i) dst[i] = u8(s[i] | (m[i] << 4));
      return;
    case DType::kQ3_K:
      for (int i = 0; i < 8; ++i) dst[i] = u8((s[i] & 15) | ((s[i + 8] & 15) << 4));
      for (int i = 0; i < 4; ++i) {
        dst[8 + i] = u8((s[i] >> 4) | (s[i + 4] >> 4 << 2) | (s[i + 8] >> 4 << 4) | (s[i + 12] >> 4 << 6));
      }
      return;
    case DType::kIQ4_XS:
      for (int i = 0; i < 4; ++i) dst[i] = u8((s[i] & 15) | ((s[i + 4] & 15) << 4));
      for (int i = 0; i < 2; ++i) {
        dst[4 + i] = u8((s[i] >> 4) | (s[i + 2] >> 4 << 2) | (s[i + 4] >> 4 << 4) | (s[i + 6] >> 4 << 6));
      }
      return;
    case DType::kQ4_KFast:
      std::memcpy(dst, s, 8);
      std::memcpy(dst + 8, m, 8);
      return;
    case DType::kQ4_K:
    case DType::kQ5_K:
      for (int i = 0; i < 8; ++i) dst[i] = u8(s[i] | (m[i] >> 4 << 6));
      for (int i = 0; i < 4; ++i) dst[8 + i] = u8((m[i] & 15) | ((m[i + 4] & 15) << 4));
      return;
    default:
      std::memcpy(dst, s, static_cast<size_t>(format.scale_bytes));
  }
}

// The inverse, for one row of the panel's bytes.
void read_scales(const PackedFormat& format, const uint8_t* bytes, int row, RowUnit& dst) {
  const auto at = [&](int i) { return static_cast<int>(bytes[scale_byte_at(format, i, row)]); };
  for (int j = 0; j < format.n_groups; ++j) {
    switch (format.dtype) {
      case DType::kQ2_K:
        dst.scales[j] = u8(at(j) & 15);
        dst.mins[j] = u8(at(j) >> 4);
        break;
      case DType::kQ3_K:
        dst.scales[j] = u8(((at(j % 8) >> (j / 8 * 4)) & 15) | (((at(8 + j % 4) >> (j / 4 * 2)) & 3) << 4));
        break;
      case DType::kIQ4_XS:
        dst.scales[j] = u8(((at(j % 4) >> (j / 4 * 4)) & 15) | (((at(4 + j % 2) >> (j / 2 * 2)) & 3) << 4));
        break;
      case DType::kQ4_KFast:
        dst.scales[j] = u8(at(j));
        dst.mins[j] = u8(at(8 + j));
        break;
      case DType::kQ4_K:
      case DType::kQ5_K:
        dst.scales[j] = u8(at(j) & 63);
        dst.mins[j] = u8(((at(8 + j % 4) >> (j / 4 * 4)) & 15) | (at(j) >> 6 << 4));
        break;
      default:
        dst.scales[j] = u8(at(j));
    }
  }
}

void write_header(const PackedFormat& format, const RowUnit* rows, int n_k, uint8_t* dst) {
  const int n_d = format.is_super ? 1 : n_k / 32;
  const auto d_bytes = static_cast<size_t>(format.d_bytes);
  const bool is_byte = format.dtype == DType::kMXFP4;
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
    uint8_t packed[16];
    pack_scales(format, rows[r], packed);
    for (int i = 0; i < format.scale_bytes; ++i) scales[scale_byte_at(format, i, r)] = packed[i];
  }
}

void read_header(const PackedFormat& format, const uint8_t* src, int n_k, int row, RowUnit& dst) {
  const int n_d = format.is_super ? 1 : n_k / 32;
  const auto d_bytes = static_cast<size_t>(format.d_bytes);
  for (int b = 0; b < n_d; ++b) {
    const int at = b * kPanelRows + row;
    if (format.dtype == DType::kMXFP4) {
      dst.d[b] = src[at];
    } else {
      std::memcpy(&dst.d[b], src + d_bytes * static_cast<size_t>(at), d_bytes);
    }
    if (format.has_min) std::memcpy(&dst.m[b], src + 2 * (n_d * kPanelRows + at), 2);
  }
  if (format.is_super) read_scales(format, src + scales_offset(format), row, dst);
}

int weight_of(const PackedFormat& format, uint8_t code) {
  if (format.dtype == DType::kMXFP4) return kFp4TwiceValues[code];
  if (format.dtype == DType::kIQ4_NL || format.dtype == DType::kIQ4_XS) return kIq4Values[code];
  return code - format.offset;
}

int sub_scale_of(const PackedFormat& format, uint8_t raw) {
  if (format.dtype == DType::kQ6_K) return static_cast<int8_t>(raw);
  return format.dtype == DType::kQ3_K || format.dtype == DType::kIQ4_XS ? raw - 32 : raw;
}

void decode_rebased(const RowUnit& unit, float* dst) {
  float d;
  std::memcpy(&d, unit.d, sizeof d);
  for (int k = 0; k < kUnit; ++k) {
    const int w = rebased_weight(unit.codes[k ^ 1], unit.scales[k / 32], static_cast<int8_t>(unit.mins[k / 32]));
    dst[k] = d * static_cast<float>(w);
  }
}

}  // namespace

void parse_row_unit(DType dtype, const std::byte* blocks, int n_k, RowUnit& dst) {
  switch (dtype) {
    case DType::kQ2_K:
      return parse_all<BlockQ2_K>(blocks, n_k, dst);
    case DType::kQ3_K:
      return parse_all<BlockQ3_K>(blocks, n_k, dst);
    case DType::kQ4_K:
      return parse_all<BlockQ4_K>(blocks, n_k, dst);
    case DType::kQ4_KFast:
      return parse_all<BlockQ4_KFast>(blocks, n_k, dst);
    case DType::kQ5_K:
      return parse_all<BlockQ5_K>(blocks, n_k, dst);
    case DType::kQ6_K:
      return parse_all<BlockQ6_K>(blocks, n_k, dst);
    case DType::kIQ4_XS:
      return parse_all<BlockIQ4_XS>(blocks, n_k, dst);
    case DType::kQ8_0:
      return parse_all<BlockQ8_0>(blocks, n_k, dst);
    case DType::kQ4_0:
      return parse_all<BlockQ4_0>(blocks, n_k, dst);
    case DType::kQ4_1:
      return parse_all<BlockQ4_1>(blocks, n_k, dst);
    case DType::kQ5_0:
      return parse_all<BlockQ5_0>(blocks, n_k, dst);
    case DType::kQ5_1:
      return parse_all<BlockQ5_1>(blocks, n_k, dst);
    case DType::kIQ4_NL:
      return parse_all<BlockIQ4_NL>(blocks, n_k, dst);
    case DType::kMXFP4:
      return parse_all<BlockMXFP4>(blocks, n_k, dst);
    default:
      return;
  }
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
  if (format.dtype == DType::kQ4_KFast) return decode_rebased(unit, dst);
  const int group = format.is_super ? kUnit / format.n_groups : 32;
  for (int k = 0; k < n_k; ++k) {
    const int j = k / group;
    const auto weight = static_cast<float>(weight_of(format, unit.codes[k]));
    if (format.is_super) {
      const float value = (f16_to_f32(unit.d[0]) * static_cast<float>(sub_scale_of(format, unit.scales[j]))) * weight;
      dst[k] = format.has_min ? value - f16_to_f32(unit.m[0]) * static_cast<float>(unit.mins[j]) : value;
      continue;
    }
    const float d = format.dtype == DType::kMXFP4 ? half_e8m0(static_cast<uint8_t>(unit.d[j])) : f16_to_f32(unit.d[j]);
    dst[k] = format.has_min ? d * weight + f16_to_f32(unit.m[j]) : d * weight;
  }
}

}  // namespace candor::kernels
