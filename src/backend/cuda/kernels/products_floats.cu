// Products of BF16 weights and of blocks of floats (FP8, FP4), whose weights are bf16s under a scale for 128 k.

#include "backend/cuda/kernels/few_slices.h"
#include "kernels/packed_format.h"

namespace candor::backend::cuda {

namespace {

// Pairs of bf16.
struct Bf16Slice {
  static constexpr int32_t kScaleBytes = 0;
  static constexpr bool kIsWhole = false;

  Uint4 pairs[kPairsOfSlice];  // of four outputs

  CANDOR_DEVICE void load(const uint8_t* panel, int32_t slice, int32_t n_k) {
    const uint8_t* at = panel + int64_t{64} * kPairsOfSlice * slice + 16 * lane_quarter();
    CANDOR_UNROLL
    for (int p = 0; p < kPairsOfSlice; ++p) pairs[p] = 2 * p < n_k ? load16(at + 64 * p) : Uint4{0, 0, 0, 0};
  }
  CANDOR_DEVICE float even(int p, int o) const { return even_of(element(pairs[p], o)); }
  CANDOR_DEVICE float odd(int p, int o) const { return odd_of(element(pairs[p], o)); }

  static CANDOR_DEVICE float add_slices(const uint8_t*, int32_t, const SliceTerms& terms, float sum) {
    for (int32_t i = 0; i < terms.n; ++i) sum = add_rn(sum, terms[i]);
    return sum;
  }
};

// Of a unit of 128 k.
constexpr int32_t kSlicesOfBlock = kernels::kFloatBlockDepth / kSliceDepth;
static_assert(kSlicesOfTurn % kSlicesOfBlock == 0);

// Four slices make a part, which the block's scale multiplies. scales: of the output, in the panel's first block.
template <class Block>
CANDOR_DEVICE float add_parts(const uint8_t* scales, int32_t begin, const SliceTerms& terms, float sum) {
  constexpr auto kUnitBytes = static_cast<int64_t>(kernels::float_block_format(Block::kType).unit_bytes());
  for (int32_t i = 0; i < terms.n; i += kSlicesOfBlock) {
    const auto* scale = reinterpret_cast<const float*>(scales + (begin + i) / kSlicesOfBlock * kUnitBytes);
    float part = 0.0f;
    for (int32_t j = i; j < i + kSlicesOfBlock; ++j) part = add_rn(part, terms[j]);
    sum = fma_rn(*scale, part, sum);
  }
  return sum;
}

struct Fp8Slice {
  using Block = quant::BlockFP8;
  static constexpr int32_t kScaleBytes = sizeof(float);
  static constexpr bool kIsWhole = true;

  Uint2 pairs[kPairsOfSlice];  // of two outputs and of two more

  CANDOR_DEVICE void load(const uint8_t* panel, int32_t slice, int32_t) {
    constexpr kernels::FloatBlockFormat kFormat = kernels::float_block_format(Block::kType);
    const uint8_t* at = panel + slice / kSlicesOfBlock * static_cast<int64_t>(kFormat.unit_bytes()) + kFormat.codes_at +
                        32 * kPairsOfSlice * (slice % kSlicesOfBlock) + 8 * lane_quarter();
    CANDOR_UNROLL
    for (int p = 0; p < kPairsOfSlice; ++p) pairs[p] = load8(at + 32 * p);
  }
  CANDOR_DEVICE uint32_t pair(int p, int o) const { return e4m3_pair(o < 2 ? pairs[p].x : pairs[p].y, o); }
  CANDOR_DEVICE float even(int p, int o) const { return half_at(pair(p, o), 0); }
  CANDOR_DEVICE float odd(int p, int o) const { return half_at(pair(p, o), 1); }

  static CANDOR_DEVICE float add_slices(const uint8_t* scales, int32_t begin, const SliceTerms& terms, float sum) {
    return add_parts<Block>(scales, begin, terms, sum);
  }
};

struct Fp4Slice {
  using Block = quant::BlockFP4;
  static constexpr int32_t kScaleBytes = sizeof(float);
  static constexpr bool kIsWhole = true;
  static constexpr int kGroups = kSliceDepth / Block::kGroup;
  uint32_t pairs[kPairsOfSlice];  // a byte of each of four outputs
  uint32_t scales[kGroups];       // likewise

  CANDOR_DEVICE void load(const uint8_t* panel, int32_t slice, int32_t) {
    constexpr kernels::FloatBlockFormat kFormat = kernels::float_block_format(Block::kType);
    const int32_t part = slice % kSlicesOfBlock;
    const uint8_t* unit =
        panel + slice / kSlicesOfBlock * static_cast<int64_t>(kFormat.unit_bytes()) + 4 * lane_quarter();
    CANDOR_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      scales[g] = load4(unit + kernels::kFp4ScalesAt + kPanelRows * (kGroups * part + g));
    }
    CANDOR_UNROLL
    for (int p = 0; p < kPairsOfSlice; ++p) {
      pairs[p] = load4(unit + kFormat.codes_at + kPanelRows * (kPairsOfSlice * part + p));
    }
  }
  CANDOR_DEVICE float scale(int p, int o) const { return e4m3_at(scales[2 * p / Block::kGroup], o); }
  CANDOR_DEVICE float even(int p, int o) const { return mul_rn(half_at(e2m1_pair(pairs[p], o), 0), scale(p, o)); }
  CANDOR_DEVICE float odd(int p, int o) const { return mul_rn(half_at(e2m1_pair(pairs[p], o), 1), scale(p, o)); }

  static CANDOR_DEVICE float add_slices(const uint8_t* scales, int32_t begin, const SliceTerms& terms, float sum) {
    return add_parts<Block>(scales, begin, terms, sum);
  }
};

}  // namespace

CANDOR_BOUNDED_KERNEL(product_bf16, ProductArgs, kFewThreads, 2) {
  multiply_slices<Bf16Slice>(args);
}
CANDOR_BOUNDED_KERNEL(product_fp8, ProductArgs, kFewThreads, 2) {
  multiply_slices<Fp8Slice>(args);
}
CANDOR_BOUNDED_KERNEL(product_fp4, ProductArgs, kFewThreads, 2) {
  multiply_slices<Fp4Slice>(args);
}

}  // namespace candor::backend::cuda
