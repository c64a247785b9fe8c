#pragma once
// Q4_K rebased: the blocks of Q4_K, read as values close to their own that cost a kernel less. One f32 scale D stands
// for the 256, and each group of 32 has a multiplier a and an offset b: value = D * w8, in f32, where
// w8 = ((a * q) >> 4) + b is an integer in [-127, 127]. So a dot product over 256 is one sum of int8 products.
// No file has these: --fast-weights reads Q4_K's blocks so. Rounding adds about 2 % to Q4_K's own error power.
//
// With w(j, q) = d * scale_j * q - dmin * min_j, in double:
//   D   = the larger of max |w(j, q)| / 127 over q in {0, 15} and max |d * scale_j| * 16 / 255, rounded to f32
//   a_j = d * scale_j * 16 / D, at most 255   (d < 0 makes D negative, so that no a_j is)
//   b_j = the mean over the 16 codes of w(j, q) / D - ((a_j * q) >> 4), clamped so that every w8 is in its range
// a_j and b_j are rounded to nearest, halves up. Scales that are not finite make D a NaN; all w8 are 0 where D is not a
// number above 0 in magnitude.

#include <cstdint>
#include <cstring>
#include <string_view>

#include "tensor/dtype.h"
#include "tensor/quant/block_format.h"
#include "tensor/quant/q4_k.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct RebasedQ4_K {
  float d;
  uint8_t a[8];
  int8_t b[8];
};

constexpr int rebased_weight(int q, int a, int b) {
  return ((a * q) >> 4) + b;
}

RebasedQ4_K rebase(const BlockQ4_K& block);

struct __attribute__((packed)) BlockQ4_KFast {
  static constexpr DType kType = DType::kQ4_KFast;
  static constexpr std::string_view kName = "Q4_K_FAST";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kSymmetricSuperBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType,
                                           .is_super = true,
                                           .low_bits = 4,
                                           .values = CodeValues::kRebased,
                                           .sub_scales = SubScales::kMultipliers,
                                           .n_groups = 8,
                                           .scale_bytes = 16,
                                           .d_bytes = 4};
  static constexpr ScaleFields scale_fields() { return BlockQ4_K::scale_fields(); }

  BlockQ4_K block;
};

void decode_block(const BlockQ4_KFast& block, float* dst);

inline void encode_block(const float* src, BlockQ4_KFast& block) {
  encode_block(src, block.block);
}

inline void parse_block(const BlockQ4_KFast& block, UnitCodes& dst, int) {
  take_nibbles_of_256(block.block.qs, dst.codes);
  for (int k = 0; k < kSuperBlock; k += 8) {
    const uint64_t codes = load_word(dst.codes + k);
    store_word(dst.codes + k, ((codes & kEvenBytes) << 8) | ((codes >> 8) & kEvenBytes));
  }
  const RebasedQ4_K rebased = rebase(block.block);
  std::memcpy(dst.d, &rebased.d, sizeof rebased.d);
  std::memcpy(dst.scales, rebased.a, sizeof rebased.a);
  std::memcpy(dst.mins, rebased.b, sizeof rebased.b);
}

}  // namespace candor::quant
