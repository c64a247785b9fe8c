// Products of int8 activations with quantised weights: one unit (256 k of 16 outputs) with the rows of a tile. Integer
// dots, then float operations once for a super-block, or for each 32. Orders: docs/numerics.md, "Products".

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
  static constexpr int kReadTiles = Traits::kIsRebased ? 1 : 2;
  static constexpr int kEights = kUnit / 32;
  static constexpr int kPairs = RowTile<1>::kPairs;
  static constexpr int kPrefetchSteps = kEights;  // in unpacking a panel, and in a tile
  static constexpr size_t kStreamAhead = kPacked.low_bits == 8 ? kStreamAheadOfBytes : kStreamAheadOfCodes;

  // Rows of a tile whose dots are in registers together: more leave no room for the sums.
  static constexpr int batch_of(int n_rows) { return n_rows > kMostDots ? n_rows / 2 : n_rows; }

  static constexpr int panels_of(int n_rows) { return n_rows > kTileRows || n_rows == 1 ? 1 : kPanels; }
  template <int n>
  static constexpr int kPanelsOf = panels_of(n);

  static constexpr size_t bytes_of_unit(int n_k) { return unit_bytes(kPacked, n_k); }

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

  template <class Prefetcher>
  static Unpacked unpack(const uint8_t* src, size_t apart, int n_k, int64_t n_panels, Unit* units,
                         Prefetcher& prefetcher) {
    for (int64_t p = 0; p < n_panels; ++p)
      unpack_unit<dtype>(src + static_cast<size_t>(p) * apart, n_k, units[p], prefetcher);
    return {units};
  }
  static Packed read(const uint8_t* src, size_t apart, int n_k, int64_t n_panels, Unit* units) {
    for (int64_t p = 0; p < n_panels; ++p) unpack_header<dtype>(src + static_cast<size_t>(p) * apart, n_k, units[p]);
    const uint8_t* low = src + unit_header_bytes(kPacked, n_k);
    return {units, low, low + low_plane_bytes(kPacked, n_k), apart};
  }

  // acc: [panels_of(n)], acc_stride apart, of [n][16].
  template <int n, class Source, class Prefetcher>
  static void tile(const Source& weights, int n_k, const RowTile<n>& rows, float* acc, int64_t acc_stride,
                   Prefetcher& prefetcher) {
    if constexpr (kPacked.is_super) {
      if constexpr (RowTile<n>::kMayHaveSmallSums) {
        if (rows.has_small_sums) return tile_super<n, DotPlan<dtype, true>>(weights, rows, acc, acc_stride, prefetcher);
      }
      tile_super<n, DotPlan<dtype, false>>(weights, rows, acc, acc_stride, prefetcher);
    } else {
      tile_32<n>(weights, n_k, rows, acc, acc_stride, prefetcher);
    }
  }

  // Of the rows of a batch, from `first` on.
  template <int n, int offset, int batch>
  static CANDOR_INLINE void start_dots(const RowTile<n>& rows, int first, int dot, I32 (*sums)[batch]) {
#pragma GCC unroll 16
    for (int r = 0; r < batch; ++r) {
      sums[0][r] = splat_i(offset == 0 ? 0 : rows.starts[dot][first + r]);
#pragma GCC unroll 2
      for (int p = 1; p < kPanelsOf<n>; ++p) sums[p][r] = sums[0][r];
    }
  }

  template <int n_groups>
  using Groups = std::make_integer_sequence<int, n_groups>;

  // w[i][p] = group first + i of eight b.
  template <int n, int first, class Source, int... i>
  static CANDOR_INLINE void load_groups(const Source& weights, int b, U8 (*w)[kPanelsOf<n>],
                                        std::integer_sequence<int, i...>) {
    (load_group<n, first + i>(weights, b, w[i]), ...);
  }
  template <int n, int g, class Source>
  static CANDOR_INLINE void load_group(const Source& weights, int b, U8* w) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) w[p] = weights.template group<g>(p, b);
  }

  // sums[p][r] += the products of group g of eight b; is_first: sums[p][r] = them.
  template <int n, int batch, bool is_first = false>
  static CANDOR_INLINE void add_group(const U8* w, int group, const RowTile<n>& rows, int first, I32 (*sums)[batch]) {
#pragma GCC unroll 16
    for (int r = 0; r < batch; ++r) {
      const auto* x = reinterpret_cast<const int8_t*>(&rows.codes[group][first + r]);
#pragma GCC unroll 2
      for (int p = 0; p < kPanelsOf<n>; ++p) {
        if constexpr (is_first) {
          sums[p][r] = dot4_in_halves<Traits::kIsWide>(w[p], x);
        } else {
          sums[p][r] = dot4<Traits::kIsWide, Traits::kInHalves, kPanelsOf<n>>(sums[p][r], w[p], x);
        }
      }
    }
  }

  template <int n, int g, bool is_first, class Source>
  static CANDOR_INLINE void load_and_add(const Source& weights, int b, const RowTile<n>& rows, I32 (*sums)[n]) {
    U8 w[kPanelsOf<n>];
    load_group<n, g>(weights, b, w);
    add_group<n, n, is_first>(w, 8 * b + g, rows, 0, sums);
  }
  // The same of groups first + i.
  template <int n, int first, bool is_first = false, class Source, int... i>
  static CANDOR_INLINE void add_groups(const Source& weights, int b, const RowTile<n>& rows, I32 (*sums)[n],
                                       std::integer_sequence<int, i...>) {
    (load_and_add < n, first + i, is_first && i == 0 > (weights, b, rows, sums), ...);
  }

  // total += dot d of eight b times its scale, for the rows from `first` on. w: its groups, where they are loaded
  // before.
  template <int n, class Plan, int d, int first, class Source>
  static CANDOR_INLINE void add_batch(const Source& weights, int b, const RowTile<n>& rows, const U8 (*w)[kPanelsOf<n>],
                                      I32 (*total)[n]) {
    constexpr int kBatch = batch_of(n);
    constexpr int kGroup = d * Plan::kGroups;
    const int j = Plan::kDots / kEights * b + d;
    I32 sums[kPanelsOf<n>][kBatch];
    constexpr bool kIsFirst = kBatch == n && Traits::kInHalves && Plan::kOffset == 0;
    if constexpr (!kIsFirst) start_dots<n, Plan::kOffset, kBatch>(rows, first, j, sums);
    if constexpr (kBatch < n) {
#pragma GCC unroll 8
      for (int g = 0; g < Plan::kGroups; ++g) add_group<n, kBatch>(w[g], 8 * b + kGroup + g, rows, first, sums);
    } else {
      add_groups<n, kGroup, kIsFirst>(weights, b, rows, sums, Groups<Plan::kGroups>{});
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
      const I32 scale = load_i(weights.units[p].scales[j * kPacked.n_groups / Plan::kDots]);
#pragma GCC unroll 16
      for (int r = 0; r < kBatch; ++r) {
        I32& sum = total[p][first + r];
        sum = Traits::kFits16 ? madd16(sum, sums[p][r], scale) : add_i(sum, mul_i(sums[p][r], scale));
      }
    }
  }

  // Dot d of eight b.
  template <int n, class Plan, int d, class Source>
  static CANDOR_INLINE void add_dot(const Source& weights, int b, const RowTile<n>& rows, I32 (*total)[n]) {
    U8 w[Plan::kGroups][kPanelsOf<n>];
    if constexpr (batch_of(n) < n) load_groups<n, d * Plan::kGroups>(weights, b, w, Groups<Plan::kGroups>{});
    add_batch<n, Plan, d, 0>(weights, b, rows, w, total);
    if constexpr (batch_of(n) < n) add_batch<n, Plan, d, batch_of(n)>(weights, b, rows, w, total);
  }

  template <int n, class Plan, class Source>
  static CANDOR_INLINE void add_dots(const Source& weights, int b, const RowTile<n>& rows, I32 (*total)[n]) {
    constexpr int kDotsOfEight = Plan::kDots / kEights;
    static_assert(kDotsOfEight == 1 || kDotsOfEight == 2 || kDotsOfEight == 4);
    add_dot<n, Plan, 0>(weights, b, rows, total);
    if constexpr (kDotsOfEight > 1) add_dot<n, Plan, 1>(weights, b, rows, total);
    if constexpr (kDotsOfEight > 2) {
      add_dot<n, Plan, 2>(weights, b, rows, total);
      add_dot<n, Plan, 3>(weights, b, rows, total);
    }
  }

  template <int n, class Plan, class Source, class Prefetcher>
  static void tile_super(const Source& weights, const RowTile<n>& rows, float* acc, int64_t acc_stride,
                         Prefetcher& prefetcher) {
    I32 total[kPanelsOf<n>][n];
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) total[p][r] = splat_i(0);
    }
    if constexpr (Traits::kIsRebased) start_dots<n, Plan::kOffset, n>(rows, 0, 0, total);
    for (int b = 0; b < kEights; ++b) {
      prefetcher.step();
      if constexpr (Traits::kIsRebased) {
        add_groups<n, 0>(weights, b, rows, total, Groups<8>{});
      } else {
        add_dots<n, Plan>(weights, b, rows, total);
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
      finish_super<n, Plan, 0>(weights.units[p], rows, total[p], acc + p * acc_stride);
      if constexpr (batch_of(n) < n) {
        finish_super<n, Plan, batch_of(n)>(weights.units[p], rows, total[p], acc + p * acc_stride);
      }
    }
  }

  // sums[r] += pairs[i] * the sums of x of row first + r, over all pairs.
  template <int n>
  static CANDOR_INLINE void add_pairs(const int32_t (*pairs)[16], const RowTile<n>& rows, int first, I32* sums) {
    constexpr int kBatch = batch_of(n);
#pragma GCC unroll 16
    for (int i = 0; i < kPairs; ++i) {
      const I32 pair = load_i(pairs[i]);
#pragma GCC unroll 16
      for (int r = 0; r < kBatch; ++r) sums[r] = dot2(sums[r], pair, rows.pairs[i][first + r]);
    }
  }

  // acc: of row 0. From row `first` on.
  template <int n, class Plan, int first>
  static CANDOR_INLINE void finish_super(const Unit& unit, const RowTile<n>& rows, I32* total, float* acc) {
    constexpr int kBatch = batch_of(n);
    if constexpr (Plan::kBiasShift != 0) add_pairs<n>(unit.bias_pairs, rows, first, total + first);
    I32 mins[kBatch];
    if constexpr (kPacked.has_min) {
#pragma GCC unroll 16
      for (int r = 0; r < kBatch; ++r) mins[r] = splat_i(0);
      add_pairs<n>(unit.min_pairs, rows, first, mins);
    }
    const F32 d = load(unit.d[0]);
#pragma GCC unroll 16
    for (int r = 0; r < kBatch; ++r) {
      float* at = acc + 16 * (first + r);
      F32 u;
      if constexpr (kPacked.has_min) {
        u = fma(d, to_f32(total[first + r]), mul(load(unit.minus_m), to_f32(mins[r])));
      } else {
        u = mul(d, to_f32(total[first + r]));
      }
      store(at, fma_scalar(u, &rows.scales[0][first + r], load(at)));
    }
  }

  template <int n>
  static CANDOR_INLINE void add_halves(I32 (*sums)[n]) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) sums[p][r] = madd16(splat_i(0), sums[p][r], splat_i(pair_of(1, 1)));
    }
  }

  template <int n, class Source, class Prefetcher>
  static void tile_32(const Source& weights, int n_k, const RowTile<n>& rows, float* acc, int64_t acc_stride,
                      Prefetcher& prefetcher) {
    F32 total[kPanelsOf<n>][n];
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) total[p][r] = load(acc + p * acc_stride + 16 * r);
    }
    for (int b = 0; b < n_k / 32; ++b) {
      prefetcher.step();
      I32 sums[kPanelsOf<n>][n];
      start_dots<n, Traits::kOffset, n>(rows, 0, b, sums);
      add_groups<n, 0>(weights, b, rows, sums, Groups<8>{});
      if constexpr (Traits::kInHalves) add_halves<n>(sums);
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
