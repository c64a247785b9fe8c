// Products with block-quantised weights, a unit at a time. Orders: docs/numerics.md, "Products".

template <DType dtype>
struct BlockProduct {
  using Unit = BlockUnit;
  using Traits = BlockTraits<dtype>;
  template <int n>
  using RowTile = BlockRowTile<dtype, n>;
  static constexpr PackedFormat kPacked = Traits::kPacked;
  static constexpr int kDepth = kUnit;
  static constexpr int kPanels = kDotPanels;
  static constexpr int kRows = kTallRows;
  // Tiles that take the weights as they are packed.
  static constexpr int kReadTiles = kPacked.high_bits == 0 && !Traits::kIsRebased ? 2 : 1;
  static constexpr int kEights = kUnit / 32;
  static constexpr int kDots = RowTile<1>::kDots;  // of a super-block
  static constexpr int kDotsOfEight = kDots / kEights;
  static constexpr int kPairs = RowTile<1>::kPairs;
  // Steps of Ahead in unpacking a panel, and in a tile.
  static constexpr int kUnpackSteps = kEights;
  static constexpr int kTileSteps = kEights;

  static constexpr int panels_of(int n_rows) { return n_rows > kTileRows ? 1 : kPanels; }
  template <int n>
  static constexpr int kPanelsOf = panels_of(n);

  static size_t bytes_of_unit(int n_k) { return unit_bytes(kPacked, n_k); }

  // Where a tile takes its weights from; group g of the eight that begin at 32 k's number b of panel p.
  struct Unpacked {
    const Unit* units;
    template <int g>
    U8 group(int p, int b) const {
      return load_u(units[p].codes[8 * b + g]);
    }
  };
  struct Packed {
    const Unit* units;  // without codes
    const uint8_t* low;
    const uint8_t* high;
    size_t apart;
    template <int g>
    U8 group(int p, int b) const {
      const size_t panel = static_cast<size_t>(p) * apart;
      return unpack_group<dtype, g>(low + panel + 64 * kPacked.low_bits * b, high + panel + 64 * kPacked.high_bits * b,
                                    units[p], b);
    }
  };

  static Unpacked unpack(const uint8_t* src, size_t apart, int n_k, int64_t n_panels, Unit* units, Ahead& ahead) {
    for (int64_t p = 0; p < n_panels; ++p)
      unpack_unit<dtype>(src + static_cast<size_t>(p) * apart, n_k, units[p], ahead);
    return {units};
  }
  static Packed read(const uint8_t* src, size_t apart, int n_k, int64_t n_panels, Unit* units) {
    for (int64_t p = 0; p < n_panels; ++p) unpack_header<dtype>(src + static_cast<size_t>(p) * apart, n_k, units[p]);
    const uint8_t* low = src + unit_header_bytes(kPacked, n_k);
    return {units, low, low + low_plane_bytes(kPacked, n_k), apart};
  }

  // acc: [panels_of(n)], acc_stride apart, of [n][16].
  template <int n, class Source>
  static void tile(const Source& weights, int n_k, const RowTile<n>& rows, float* acc, int64_t acc_stride,
                   Ahead& ahead) {
    if constexpr (kPacked.is_super) {
      tile_super<n>(weights, rows, acc, acc_stride, ahead);
    } else {
      tile_32<n>(weights, n_k, rows, acc, acc_stride, ahead);
    }
  }

  template <int n>
  static inline __attribute__((always_inline)) void start_dots(const RowTile<n>& rows, int dot, I32 (*sums)[n]) {
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) {
      sums[0][r] = splat_i(rows.starts[dot][r]);
#pragma GCC unroll 2
      for (int p = 1; p < kPanelsOf<n>; ++p) sums[p][r] = sums[0][r];
    }
  }

  // sums[p][r] += the products of groups [g, end) of eight b.
  template <int n, int g, int end, class Source>
  static inline __attribute__((always_inline)) void add_groups(const Source& weights, int b, const RowTile<n>& rows,
                                                               I32 (*sums)[n]) {
    U8 w[kPanelsOf<n>];
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) w[p] = weights.template group<g>(p, b);
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) {
      const auto* x = reinterpret_cast<const int8_t*>(&rows.codes[8 * b + g][r]);
#pragma GCC unroll 2
      for (int p = 0; p < kPanelsOf<n>; ++p) sums[p][r] = dot4<Traits::kIsWide, kPanelsOf<n>>(sums[p][r], w[p], x);
    }
    if constexpr (g + 1 < end) add_groups<n, g + 1, end>(weights, b, rows, sums);
  }

  // total += the dots of eight b from its d-th on, times their scales.
  template <int n, int d, class Source>
  static inline __attribute__((always_inline)) void add_dots(const Source& weights, int b, const RowTile<n>& rows,
                                                             I32 (*total)[n]) {
    const int j = kDotsOfEight * b + d;
    I32 sums[kPanelsOf<n>][n];
    start_dots<n>(rows, j, sums);
    add_groups<n, d * Traits::kDotGroups, (d + 1) * Traits::kDotGroups>(weights, b, rows, sums);
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
      const I32 scale = load_i(weights.units[p].scales[j * kPacked.n_groups / kDots]);
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) {
        total[p][r] =
            Traits::kFits16 ? madd16(total[p][r], sums[p][r], scale) : add_i(total[p][r], mul_i(sums[p][r], scale));
      }
    }
    if constexpr (d + 1 < kDotsOfEight) add_dots<n, d + 1>(weights, b, rows, total);
  }

  template <int n, class Source>
  static void tile_super(const Source& weights, const RowTile<n>& rows, float* acc, int64_t acc_stride, Ahead& ahead) {
    I32 total[kPanelsOf<n>][n];
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) total[p][r] = splat_i(0);
    }
    if constexpr (Traits::kIsRebased) start_dots<n>(rows, 0, total);
    for (int b = 0; b < kEights; ++b) {
      ahead.step();
      if constexpr (Traits::kIsRebased) {
        add_groups<n, 0, 8>(weights, b, rows, total);
      } else {
        add_dots<n, 0>(weights, b, rows, total);
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) finish_super<n>(weights.units[p], rows, total[p], acc + p * acc_stride);
  }

  // sums[r] += pairs[i] * the row's sums of x, over all pairs.
  template <int n>
  static inline __attribute__((always_inline)) void add_pairs(const int32_t (*pairs)[16], const RowTile<n>& rows,
                                                              I32* sums) {
#pragma GCC unroll 16
    for (int i = 0; i < kPairs; ++i) {
      const I32 pair = load_i(pairs[i]);
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) sums[r] = dot2(sums[r], pair, rows.pairs[i][r]);
    }
  }

  template <int n>
  static inline __attribute__((always_inline)) void finish_super(const Unit& unit, const RowTile<n>& rows, I32* total,
                                                                 float* acc) {
    if constexpr (Traits::kBiasShift != 0) add_pairs<n>(unit.bias_pairs, rows, total);
    I32 mins[n];
    if constexpr (kPacked.has_min) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) mins[r] = splat_i(0);
      add_pairs<n>(unit.min_pairs, rows, mins);
    }
    const F32 d = load(unit.d[0]);
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) {
      F32 u;
      if constexpr (kPacked.has_min) {
        u = fma(d, to_f32(total[r]), mul(load(unit.minus_m), to_f32(mins[r])));
      } else {
        u = mul(d, to_f32(total[r]));
      }
      store(acc + 16 * r, fma_scalar(u, &rows.scales[0][r], load(acc + 16 * r)));
    }
  }

  template <int n, class Source>
  static void tile_32(const Source& weights, int n_k, const RowTile<n>& rows, float* acc, int64_t acc_stride,
                      Ahead& ahead) {
    F32 total[kPanelsOf<n>][n];
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) total[p][r] = load(acc + p * acc_stride + 16 * r);
    }
    for (int b = 0; b < n_k / 32; ++b) {
      ahead.step();
      I32 sums[kPanelsOf<n>][n];
      start_dots<n>(rows, b, sums);
      add_groups<n, 0, 8>(weights, b, rows, sums);
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) {
        const F32 dx = splat(rows.scales[b][r]);
#pragma GCC unroll 2
        for (int p = 0; p < kPanelsOf<n>; ++p) {
          const Unit& unit = weights.units[p];
          total[p][r] = fma(mul(load(unit.d[b]), dx), to_f32(sums[p][r]), total[p][r]);
          if constexpr (kPacked.has_min) {
            total[p][r] = fma(mul(load(unit.m[b]), dx), splat(rows.sums[b][r]), total[p][r]);
          }
        }
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) store(acc + p * acc_stride + 16 * r, total[p][r]);
    }
  }
};
