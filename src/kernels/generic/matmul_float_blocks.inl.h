// Products with FP8 and FP4 weights: those of BF16 (matmul_floats.inl.h) over a block of 128 k, from zero, under the
// block's scale. A unit is a block of 16 outputs: 256 d f32[16], then codes (float_codes.inl.h).
// Order: docs/numerics.md, "Products".

struct alignas(64) FloatBlockUnit {
  float w[kFloatBlockDepth][16];
  float d[16];
};

template <class Codes>
struct FloatBlockProduct {
  using Unit = FloatBlockUnit;
  template <int n>
  using RowTile = FloatRowTile<n>;
  static constexpr int kDepth = kFloatBlockDepth;
  static constexpr int kPanels = kDotPanels;
  static constexpr int kRows = kTileRowsBf16;
  static constexpr int kReadTiles = 1;  // that take the weights as they are packed
  static constexpr int kStep = 32;      // k
  static constexpr int kPrefetchSteps = kDepth / kStep;
  static constexpr size_t kStreamAhead = kStreamAheadOfCodes;

  static constexpr int panels_of(int n_rows) { return n_rows == 1 ? 1 : kPanels; }
  template <int n>
  static constexpr int kPanelsOf = panels_of(n);

  static constexpr size_t bytes_of_unit(int) { return Codes::kFormat.unit_bytes(); }

  // Where a tile takes its weights from.
  struct Unpacked {
    struct Group {
      const float (*w)[16];
      CANDOR_INLINE F32 even(int j) const { return load(w[j]); }
      CANDOR_INLINE F32 odd(int j) const { return load(w[j + 1]); }
    };
    const Unit* units;
    CANDOR_INLINE Group group(int p, int k) const { return {units[p].w + k}; }
    F32 scale(int p) const { return load(units[p].d); }
  };
  struct Packed {
    using Group = Codes;
    const uint8_t* src;
    size_t apart;  // from panel to panel
    const uint8_t* unit(int p) const { return src + static_cast<size_t>(p) * apart; }
    CANDOR_INLINE Group group(int p, int k) const { return Codes::group(unit(p), k); }
    F32 scale(int p) const { return load(reinterpret_cast<const float*>(unit(p))); }
  };

  template <class Prefetcher>
  static Unpacked unpack(const uint8_t* src, size_t apart, int n_k, int64_t n_panels, Unit* units,
                         Prefetcher& prefetcher) {
    for (int64_t p = 0; p < n_panels; ++p) {
      const Packed panel{src + static_cast<size_t>(p) * apart, 0};
      for (int k = 0; k < n_k; k += kCodeGroup) {
        if (k % kStep == 0) prefetcher.step();
        const Codes codes = panel.group(0, k);
        for (int j = 0; j < kCodeGroup; j += 2) {
          store(units[p].w[k + j], codes.even(j));
          store(units[p].w[k + j + 1], codes.odd(j));
        }
      }
      store(units[p].d, panel.scale(0));
    }
    return {units};
  }
  static Packed read(const uint8_t* src, size_t apart, int, int64_t, Unit*) { return {src, apart}; }

  // acc: [panels_of(n)], acc_stride apart, of [n][16].
  template <int n, class Source, class Prefetcher>
  static CANDOR_NO_INLINE void tile(const Source& weights, int n_k, const RowTile<n>& rows, float* acc,
                                    int64_t acc_stride, Prefetcher& prefetcher) {
    alignas(64) float sums[kPanelsOf<n>][n][16] = {};
    const int last = n_k - kStep;
    for (int k = 0; k < n_k; k += kStep) {
      prefetcher.step();
      F32 step[kPanelsOf<n>][n];
      multiply_step<n>(weights, rows, k, step);
#pragma GCC unroll 2
      for (int p = 0; p < kPanelsOf<n>; ++p) {
        const F32 d = weights.scale(p);
#pragma GCC unroll 16
        for (int r = 0; r < n; ++r) {
          const F32 sum = add(load(sums[p][r]), step[p][r]);
          float* total = acc + p * acc_stride + 16 * r;
          if (k < last) store(sums[p][r], sum);
          if (k == last) store(total, fma(d, sum, load(total)));
        }
      }
    }
  }

  // As TDPBF16PS: a chain over the even k, one over the odd ones, and their sum.
  template <int n, class Source>
  static CANDOR_INLINE void multiply_step(const Source& weights, const RowTile<n>& rows, int k, F32 (*step)[n]) {
    F32 even[kPanelsOf<n>][n];
    F32 odd[kPanelsOf<n>][n];
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) even[p][r] = odd[p][r] = splat(0.0f);
    }
    for (int end = k + kStep; k < end; k += kCodeGroup) {
      typename Source::Group groups[kPanelsOf<n>];
#pragma GCC unroll 2
      for (int p = 0; p < kPanelsOf<n>; ++p) groups[p] = weights.group(p, k);
      for (int j = 0; j < kCodeGroup; j += 2) {
        F32 w[kPanelsOf<n>];
#pragma GCC unroll 2
        for (int p = 0; p < kPanelsOf<n>; ++p) w[p] = groups[p].even(j);
        add_products<n>(w, rows, k + j, even);
#pragma GCC unroll 2
        for (int p = 0; p < kPanelsOf<n>; ++p) w[p] = groups[p].odd(j);
        add_products<n>(w, rows, k + j + 1, odd);
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) step[p][r] = add(even[p][r], odd[p][r]);
    }
  }

  // chains[p][r] += x[r][k] * w[p].
  template <int n>
  static CANDOR_INLINE void add_products(const F32* w, const RowTile<n>& rows, int k, F32 (*chains)[n]) {
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanelsOf<n>; ++p) chains[p][r] = fma_scalar(w[p], rows.rows[r] + k, chains[p][r]);
    }
  }
};

inline void multiply_blocks_of_floats(const MatmulArgs& a) {
  if (a.shape.dtype == DType::kFP4) return multiply<FloatBlockProduct<Fp4Codes>>(a);
  multiply<FloatBlockProduct<Fp8Codes>>(a);
}
