// Products of many rows with float weights and blocks of floats.

#include "backend/cuda/kernels/float_codes.h"
#include "backend/cuda/kernels/many_floats.h"
#include "kernels/packed_format.h"

namespace candor::backend::cuda {

namespace {

struct F32Slice {
  static constexpr bool kHasPairs = false;
  static constexpr bool kHasParts = false;
  static constexpr int32_t kSliceBytes = slice_bytes(DType::kF32);
  static CANDOR_DEVICE int32_t n_pieces(int32_t n_k) { return 4 * n_k; }
  static CANDOR_DEVICE int64_t piece_at(int32_t slice, int32_t i) { return int64_t{kSliceBytes} * slice + 16 * i; }

  const uint8_t* at;

  CANDOR_DEVICE F32Slice(const uint8_t* panel, int32_t quad) : at(panel + 16 * quad) {}
  CANDOR_DEVICE void pair(int32_t p, float (&even)[4], float (&odd)[4]) const {
    const Uint4 first = load16(at + 128 * p);
    const Uint4 second = load16(at + 128 * p + 64);
    CANDOR_UNROLL
    for (int o = 0; o < 4; ++o) {
      even[o] = float_of(element(first, o));
      odd[o] = float_of(element(second, o));
    }
  }
};

struct F16Slice {
  static constexpr bool kHasPairs = false;
  static constexpr bool kHasParts = false;
  static constexpr int32_t kSliceBytes = slice_bytes(DType::kF16);
  static CANDOR_DEVICE int32_t n_pieces(int32_t n_k) { return 2 * n_k; }
  static CANDOR_DEVICE int64_t piece_at(int32_t slice, int32_t i) { return int64_t{kSliceBytes} * slice + 16 * i; }

  const uint8_t* at;

  CANDOR_DEVICE F16Slice(const uint8_t* panel, int32_t quad) : at(panel + 8 * quad) {}
  CANDOR_DEVICE void pair(int32_t p, float (&even)[4], float (&odd)[4]) const {
    four(load8(at + 64 * p), even);
    four(load8(at + 64 * p + 32), odd);
  }
  static CANDOR_DEVICE void four(const Uint2& halves, float (&w)[4]) {
    CANDOR_UNROLL
    for (int o = 0; o < 4; ++o) {
      w[o] = half_to_number(static_cast<uint16_t>((o < 2 ? halves.x : halves.y) >> (16 * (o % 2))));
    }
  }
};

struct Bf16Slice {
  static constexpr bool kHasPairs = true;
  static constexpr bool kHasParts = false;
  static constexpr int32_t kSliceBytes = slice_bytes(DType::kBF16);
  static CANDOR_DEVICE int32_t n_pieces(int32_t n_k) { return 4 * ((n_k + 1) / 2); }
  static CANDOR_DEVICE int64_t piece_at(int32_t slice, int32_t i) { return int64_t{kSliceBytes} * slice + 16 * i; }

  const uint8_t* at;

  CANDOR_DEVICE Bf16Slice(const uint8_t* panel, int32_t quad) : at(panel + 16 * quad) {}
  CANDOR_DEVICE void pair(int32_t p, float (&even)[4], float (&odd)[4]) const {
    const Uint4 pairs = load16(at + 64 * p);
    CANDOR_UNROLL
    for (int o = 0; o < 4; ++o) {
      even[o] = even_of(element(pairs, o));
      odd[o] = odd_of(element(pairs, o));
    }
  }
};

// What FP8 and FP4 share.
template <class Block>
struct FloatBlockSlice {
  static constexpr bool kHasPairs = true;
  static constexpr bool kHasParts = true;
  static constexpr int32_t kSliceBytes = slice_bytes(Block::kType);
  static constexpr auto kBlockBytes = static_cast<int64_t>(kernels::float_block_format(Block::kType).unit_bytes());
  static constexpr auto kCodesAt = static_cast<int32_t>(kernels::float_block_format(Block::kType).codes_at);
  static constexpr int32_t kSlicesOfBlock = kernels::kFloatBlockDepth / kSliceDepth;
  static constexpr int32_t kCodeBytes =
      kPanelRows * kSliceDepth / 2 * static_cast<int32_t>(kernels::float_block_format(Block::kType).pair_bytes);
  static CANDOR_DEVICE int32_t n_pieces(int32_t) { return kSliceBytes / 16; }
  // Codes, then FP4's scales.
  static CANDOR_DEVICE int64_t piece_at(int32_t slice, int32_t i) {
    const int32_t part = slice % kSlicesOfBlock;
    const int32_t codes = kCodesAt + kCodeBytes * part + 16 * i;
    const int32_t scales =
        static_cast<int32_t>(kernels::kFp4ScalesAt) + (kSliceBytes - kCodeBytes) * part + 16 * i - kCodeBytes;
    return kBlockBytes * (slice / kSlicesOfBlock) + (16 * i < kCodeBytes ? codes : scales);
  }
};

struct Fp8Slice : FloatBlockSlice<quant::BlockFP8> {
  const uint8_t* at;

  CANDOR_DEVICE Fp8Slice(const uint8_t* panel, int32_t quad) : at(panel + 8 * quad) {}
  CANDOR_DEVICE void pair(int32_t p, float (&even)[4], float (&odd)[4]) const {
    const Uint2 codes = load8(at + 32 * p);
    CANDOR_UNROLL
    for (int o = 0; o < 4; ++o) {
      const uint32_t two = e4m3_pair(o < 2 ? codes.x : codes.y, o);
      even[o] = half_at(two, 0);
      odd[o] = half_at(two, 1);
    }
  }
};

struct Fp4Slice : FloatBlockSlice<quant::BlockFP4> {
  const uint8_t* at;

  CANDOR_DEVICE Fp4Slice(const uint8_t* panel, int32_t quad) : at(panel + 4 * quad) {}
  CANDOR_DEVICE void pair(int32_t p, float (&even)[4], float (&odd)[4]) const {
    const uint32_t codes = load4(at + kPanelRows * p);
    const uint32_t scales = load4(at + kCodeBytes + kPanelRows * (2 * p / quant::BlockFP4::kGroup));
    CANDOR_UNROLL
    for (int o = 0; o < 4; ++o) {
      const float scale = e4m3_at(scales, o);
      const uint32_t two = e2m1_pair(codes, o);
      even[o] = mul_rn(half_at(two, 0), scale);
      odd[o] = mul_rn(half_at(two, 1), scale);
    }
  }
};

}  // namespace

CANDOR_BOUNDED_KERNEL(product_f32_many, ProductArgs, kManyThreads, 3) {
  multiply_many_floats<F32Slice>(args);
}
CANDOR_BOUNDED_KERNEL(product_f16_many, ProductArgs, kManyThreads, 3) {
  multiply_many_floats<F16Slice>(args);
}
CANDOR_BOUNDED_KERNEL(product_bf16_many, ProductArgs, kManyThreads, 3) {
  multiply_many_floats<Bf16Slice>(args);
}
CANDOR_BOUNDED_KERNEL(product_fp8_many, ProductArgs, kManyThreads, 3) {
  multiply_many_floats<Fp8Slice>(args);
}
CANDOR_BOUNDED_KERNEL(product_fp4_many, ProductArgs, kManyThreads, 3) {
  multiply_many_floats<Fp4Slice>(args);
}

}  // namespace candor::backend::cuda
