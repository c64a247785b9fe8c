// The codes of blocks of floats (packed_format.h) as 2^-8 of the numbers that they mean without d, bf16s in f32: of the
// even and the odd k of a pair, 16 rows at a time. A group is kCodeGroup k; j: even, within it.

constexpr int kCodeGroup = quant::BlockFP4::kGroup;

struct Fp8Codes {
  static constexpr FloatBlockFormat kFormat = float_block_format(DType::kFP8);

  const uint8_t* at;

  // unit: of a panel. k: of the group's first.
  static CANDOR_INLINE Fp8Codes group(const uint8_t* unit, int k) { return {unit + kFormat.codes_at + kPanelRows * k}; }
  CANDOR_INLINE F32 even(int j) const { return even_e4m3(at + kPanelRows * j); }
  CANDOR_INLINE F32 odd(int j) const { return odd_e4m3(at + kPanelRows * j); }
};

struct Fp4Codes {
  static constexpr FloatBlockFormat kFormat = float_block_format(DType::kFP4);

  const uint8_t* at;
  F32 scale;

  static CANDOR_INLINE Fp4Codes group(const uint8_t* unit, int k) {
    return {unit + kFormat.codes_at + kPanelRows / 2 * k,
            scales_e4m3(unit + kFp4ScalesAt + kPanelRows * (k / kCodeGroup))};
  }
  CANDOR_INLINE F32 even(int j) const { return mul(low_e2m1(at + kPanelRows / 2 * j), scale); }
  CANDOR_INLINE F32 odd(int j) const { return mul(high_e2m1(at + kPanelRows / 2 * j), scale); }
};
