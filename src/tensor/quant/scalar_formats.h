#pragma once
// F32, F16 and BF16 as blocks of one element, so that every weight format has the same decode and encode verbs.
// F32 is passed on bit for bit; F16 and BF16 widen exactly and are rounded to nearest even (base/half.h).

#include <string_view>

#include "tensor/quant/block_math.h"

namespace candor::quant {

struct __attribute__((packed)) BlockF32 {
  static constexpr DType kType = DType::kF32;
  static constexpr std::string_view kName = "F32";
  static constexpr int kElements = 1;
  static constexpr KernelFamily kFamily = KernelFamily::kFloats;
  static constexpr uint32_t kExponentBits = 0x7f800000;  // all set in NaN and infinity
  static constexpr ScaleFields scale_fields() { return {}; }

  float value;
};
struct __attribute__((packed)) BlockF16 {
  static constexpr DType kType = DType::kF16;
  static constexpr std::string_view kName = "F16";
  static constexpr int kElements = 1;
  static constexpr KernelFamily kFamily = KernelFamily::kFloats;
  static constexpr uint16_t kExponentBits = 0x7c00;  // all set in NaN and infinity
  static constexpr ScaleFields scale_fields() { return {}; }

  f16 value;
};
struct __attribute__((packed)) BlockBF16 {
  static constexpr DType kType = DType::kBF16;
  static constexpr std::string_view kName = "BF16";
  static constexpr int kElements = 1;
  static constexpr KernelFamily kFamily = KernelFamily::kFloats;
  static constexpr uint16_t kExponentBits = 0x7f80;  // all set in NaN and infinity
  static constexpr ScaleFields scale_fields() { return {}; }

  bf16 value;
};
static_assert(sizeof(BlockF32) == 4 && sizeof(BlockF16) == 2 && sizeof(BlockBF16) == 2);

inline void decode_block(const BlockF32& block, float* dst) {
  *dst = block.value;
}
inline void decode_block(const BlockF16& block, float* dst) {
  *dst = f16_to_f32(block.value);
}
inline void decode_block(const BlockBF16& block, float* dst) {
  *dst = bf16_to_f32(block.value);
}

inline void encode_block(const float* src, BlockF32& block) {
  block.value = *src;
}
inline void encode_block(const float* src, BlockF16& block) {
  block.value = f32_to_f16(*src);
}
inline void encode_block(const float* src, BlockBF16& block) {
  block.value = f32_to_bf16(*src);
}

}  // namespace candor::quant
