// Products with block-quantised weights, a unit at a time. Orders: docs/numerics.md, "Products".

inline int32_t pair_of(int low, int high) {
  return static_cast<int32_t>((static_cast<uint32_t>(high) << 16) | (static_cast<uint32_t>(low) & 0xffffu));
}

template <DType dtype>
struct BlockProduct {
  using Unit = BlockUnit;
  using Traits = BlockTraits<dtype>;
  static constexpr PackedFormat kPacked = Traits::kPacked;
  static constexpr int kDepth = kUnit;
  static constexpr int kRows = kTileRows;
  static constexpr int kDots = kUnit / 4 / Traits::kDotGroups;  // of a super-block
  static constexpr int kPairs = kPacked.is_super ? kPacked.n_groups / 2 : 1;

  // What a row brings to one unit: as few cache lines as can be.
  struct Row {
    int32_t starts[kPacked.is_super ? kDots : 8];  // of the dots: -offset * sum of x
    int32_t pairs[kPairs];                         // super-blocks: sums of x of two sub-scale groups
    float scales[kPacked.is_super ? 1 : 8];
    float sums[!kPacked.is_super && kPacked.has_min ? 8 : 1];  // 32-blocks: sums of x
    const std::byte* data;                                     // codes
  };

  static size_t bytes_of_unit(int n_k) { return unit_bytes(kPacked, n_k); }

  static const Unit* unpack(const uint8_t* src, int n_k, Unit& unit) {
    unpack_unit<dtype>(src, n_k, unit);
    return &unit;
  }

  static void prepare(const std::byte* row, int64_t n_in, int64_t k, int n_k, Row& dst) {
    constexpr Encoding kEncoding = kPacked.is_super ? Encoding::kQ8x256 : Encoding::kQ8x32;
    dst.data = row + k;
    const auto* sums = reinterpret_cast<const int16_t*>(row + encoded_sums_offset(kEncoding, n_in));
    const auto* scales = reinterpret_cast<const float*>(row + encoded_scales_offset(kEncoding, n_in));
    if constexpr (kPacked.is_super) {
      prepare_super(sums + k / 16, dst);
      dst.scales[0] = scales[k / kUnit];
    } else {
      for (int b = 0; b < n_k / 32; ++b) {
        dst.starts[b] = -Traits::kOffset * sums[k / 32 + b];
        if constexpr (kPacked.has_min) dst.sums[b] = static_cast<float>(sums[k / 32 + b]);
        dst.scales[b] = scales[k / 32 + b];
      }
    }
  }

  static void prepare_super(const int16_t* sums, Row& dst) {
    if constexpr (Traits::kDotGroups == 2) {
      prepare_eights(reinterpret_cast<const uint8_t*>(dst.data), dst.starts);
    } else if constexpr (Traits::kDotGroups == 4) {
      for (int j = 0; j < 16; ++j) dst.starts[j] = -Traits::kOffset * sums[j];
    } else {
      for (int j = 0; j < 8; ++j) dst.starts[j] = -Traits::kOffset * (sums[2 * j] + sums[2 * j + 1]);
    }
    if constexpr (kPacked.n_groups == 16) {
      std::memcpy(dst.pairs, sums, sizeof dst.pairs);
    } else {
      for (int p = 0; p < 4; ++p) {
        dst.pairs[p] = pair_of(sums[4 * p] + sums[4 * p + 1], sums[4 * p + 2] + sums[4 * p + 3]);
      }
    }
  }

  // starts of dots of eight k.
  static void prepare_eights(const uint8_t* codes, int32_t* starts) {
    constexpr int8_t kOnes[4] = {1, 1, 1, 1};
    int32_t fours[kUnit / 4];
    for (int g = 0; g < kUnit / 4; g += 16) {
      const U8 x = load_u(codes + 4 * g);
      const U8 w = kDotIsSigned ? x : flip_sign_u(x);
      store_i(fours + g, dot4<true>(splat_i(kDotIsSigned ? 0 : -4 * 128), w, kOnes));
    }
    for (int j = 0; j < kUnit / 8; ++j) starts[j] = -Traits::kOffset * (fours[2 * j] + fours[2 * j + 1]);
  }

  // sums[p][r] = dot number `dot` of unit p and row r.
  template <int n_rows>
  static inline __attribute__((always_inline)) void dots(const Unit* units, const Row* rows, int dot,
                                                         I32 (*sums)[n_rows]) {
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) {
      sums[0][r] = splat_i(rows[r].starts[dot]);
#pragma GCC unroll 2
      for (int p = 1; p < kDotPanels; ++p) sums[p][r] = sums[0][r];
    }
#pragma GCC unroll 8
    for (int g = 0; g < Traits::kDotGroups; ++g) {
      const int group = dot * Traits::kDotGroups + g;
      U8 w[kDotPanels];
#pragma GCC unroll 2
      for (int p = 0; p < kDotPanels; ++p) w[p] = load_u(units[p].codes[group]);
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) {
        const int8_t* x = reinterpret_cast<const int8_t*>(rows[r].data) + 4 * group;
#pragma GCC unroll 2
        for (int p = 0; p < kDotPanels; ++p) sums[p][r] = dot4<Traits::kIsWide>(sums[p][r], w[p], x);
      }
    }
  }

  // acc: [kDotPanels], acc_stride apart, of [n_rows][16].
  template <int n_rows>
  static void tile(const Unit* units, int n_k, const Row* rows, float* acc, int64_t acc_stride) {
    if constexpr (kPacked.is_super) {
      tile_super<n_rows>(units, rows, acc, acc_stride);
    } else {
      tile_32<n_rows>(units, n_k, rows, acc, acc_stride);
    }
  }

  template <int n_rows>
  static void tile_super(const Unit* units, const Row* rows, float* acc, int64_t acc_stride) {
    I32 total[kDotPanels][n_rows];
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) {
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) total[p][r] = splat_i(0);
    }
    for (int j = 0; j < kDots; ++j) {
      I32 sums[kDotPanels][n_rows];
      dots<n_rows>(units, rows, j, sums);
#pragma GCC unroll 2
      for (int p = 0; p < kDotPanels; ++p) {
        const I32 scale = load_i(units[p].scales[j * kPacked.n_groups / kDots]);
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; ++r) {
          total[p][r] =
              Traits::kFits16 ? madd16(total[p][r], sums[p][r], scale) : add_i(total[p][r], mul_i(sums[p][r], scale));
        }
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) finish_super<n_rows>(units[p], rows, total[p], acc + p * acc_stride);
  }

  // sums[r] += pairs[i] * the row's sums of x, over all pairs.
  template <int n_rows>
  static inline __attribute__((always_inline)) void add_pairs(const int32_t (*pairs)[16], const Row* rows, I32* sums) {
#pragma GCC unroll 8
    for (int i = 0; i < kPairs; ++i) {
      const I32 pair = load_i(pairs[i]);
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) sums[r] = dot2(sums[r], pair, rows[r].pairs[i]);
    }
  }

  template <int n_rows>
  static inline __attribute__((always_inline)) void finish_super(const Unit& unit, const Row* rows, I32* total,
                                                                 float* acc) {
    if constexpr (Traits::kBiasShift != 0) add_pairs<n_rows>(unit.bias_pairs, rows, total);
    I32 mins[n_rows];
    if constexpr (kPacked.has_min) {
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) mins[r] = splat_i(0);
      add_pairs<n_rows>(unit.min_pairs, rows, mins);
    }
    const F32 d = load(unit.d[0]);
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) {
      F32 u;
      if constexpr (kPacked.has_min) {
        u = fma(d, to_f32(total[r]), mul(load(unit.minus_m), to_f32(mins[r])));
      } else {
        u = mul(d, to_f32(total[r]));
      }
      store(acc + 16 * r, fma_scalar(u, rows[r].scales, load(acc + 16 * r)));
    }
  }

  template <int n_rows>
  static void tile_32(const Unit* units, int n_k, const Row* rows, float* acc, int64_t acc_stride) {
    F32 total[kDotPanels][n_rows];
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) {
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) total[p][r] = load(acc + p * acc_stride + 16 * r);
    }
    for (int b = 0; b < n_k / 32; ++b) {
      I32 sums[kDotPanels][n_rows];
      dots<n_rows>(units, rows, b, sums);
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) {
        const F32 dx = splat(rows[r].scales[b]);
#pragma GCC unroll 2
        for (int p = 0; p < kDotPanels; ++p) {
          total[p][r] = fma(mul(load(units[p].d[b]), dx), to_f32(sums[p][r]), total[p][r]);
          if constexpr (kPacked.has_min) {
            total[p][r] = fma(mul(load(units[p].m[b]), dx), splat(rows[r].sums[b]), total[p][r]);
          }
        }
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) {
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) store(acc + p * acc_stride + 16 * r, total[p][r]);
    }
  }
};
