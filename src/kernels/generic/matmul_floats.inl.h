// Products of float activations with F32, F16 and BF16 weights, 128 k of 16 outputs at a time.
// Orders: docs/numerics.md, "Products".

constexpr int kFloatDepth = 128;  // units of two panels and the rows of a tile stay in the first-level cache

struct alignas(64) FloatUnit {
  float w[kFloatDepth][16];
};

// The rows of a tile, from the unit's first k on.
template <int n>
struct FloatRowTile {
  const float* rows[n];

  void prepare(const std::byte* const* encoded, const RowLayout&, int64_t k, int) {
    for (int r = 0; r < n; ++r) rows[r] = reinterpret_cast<const float*>(encoded[r]) + k;
  }
};

template <DType dtype>
struct FloatProduct {
  using Unit = FloatUnit;
  template <int n>
  using RowTile = FloatRowTile<n>;
  static constexpr bool kIsBf16 = dtype == DType::kBF16;
  static constexpr int kDepth = kFloatDepth;
  static constexpr int kPanels = kDotPanels;
  static constexpr int kRows = kIsBf16 ? kTileRowsBf16 : kTileRowsF32;
  static constexpr int kReadTiles = 1;                   // that take the weights as they are packed
  static constexpr int kStep = 32;                       // k
  static constexpr int kPrefetchSteps = kDepth / kStep;  // in unpacking a panel, and in a tile
  static constexpr size_t kStreamAhead = kStreamAheadOfBytes;

  // One chain of F16 alone is slower than memory.
  static constexpr int panels_of(int n_rows) { return n_rows == 1 && dtype != DType::kF16 ? 1 : kPanels; }
  template <int n>
  static constexpr int kPanelsOf = panels_of(n);

  static constexpr size_t bytes_of_unit(int n_k) {
    if (dtype == DType::kF32) return static_cast<size_t>(n_k) * 64;
    return static_cast<size_t>(kIsBf16 ? (n_k + 1) / 2 * 2 : n_k) * 32;
  }

  // Where a tile takes its weights from; `odd` says whether k is.
  struct Unpacked {
    const Unit* units;
    template <bool odd>
    F32 value(int p, int k) const {
      return load(units[p].w[k]);
    }
  };
  struct Packed {
    const uint8_t* src;
    size_t apart;  // from panel to panel
    template <bool odd>
    F32 value(int p, int k) const {
      const uint8_t* at = src + static_cast<size_t>(p) * apart;
      if constexpr (dtype == DType::kF32) {
        return load(reinterpret_cast<const float*>(at) + 16 * k);
      } else if constexpr (dtype == DType::kF16) {
        return load_f16(at + 32 * k);
      } else if constexpr (odd) {
        return odd_bf16(load_i(reinterpret_cast<const int32_t*>(at + 32 * (k - 1))));
      } else {
        return even_bf16(load_i(reinterpret_cast<const int32_t*>(at + 32 * k)));
      }
    }
  };

  template <class Prefetcher>
  static Unpacked unpack(const uint8_t* src, size_t apart, int n_k, int64_t n_panels, Unit* units,
                         Prefetcher& prefetcher) {
    for (int64_t p = 0; p < n_panels; ++p) {
      const Packed panel{src + static_cast<size_t>(p) * apart, 0};
      for (int k = 0; k < n_k; k += 2) {
        if (k % kStep == 0) prefetcher.step();
        store(units[p].w[k], panel.template value<false>(0, k));
        if (k + 1 < n_k) store(units[p].w[k + 1], panel.template value<true>(0, k + 1));
      }
    }
    return {units};
  }
  static Packed read(const uint8_t* src, size_t apart, int, int64_t, Unit*) { return {src, apart}; }

  // acc: [panels_of(n)], acc_stride apart, of [n][16].
  template <int n, class Source, class Prefetcher>
  static CANDOR_NO_INLINE void tile(const Source& weights, int n_k, const RowTile<n>& rows, float* acc,
                                    int64_t acc_stride, Prefetcher& prefetcher) {
    F32 total[kPanelsOf<n>][n];
    if constexpr (!kIsBf16) load_sums<n>(acc, acc_stride, total);
    for (int k = 0; k < n_k; k += kStep) {
      prefetcher.step();
      const KRange range{k, n_k - k < kStep ? n_k : k + kStep};
      if constexpr (kIsBf16) {
        add_chains<n>(weights, rows, range, acc, acc_stride);
      } else {
        add_range<n>(weights, rows, range, total, total);
      }
    }
    if constexpr (!kIsBf16) store_sums<n>(acc, acc_stride, total);
  }

  template <int n>
  static CANDOR_INLINE void load_sums(const float* acc, int64_t acc_stride, F32 (*total)[n]) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) total[p][r] = load(acc + p * acc_stride + 16 * r);
    }
  }
  template <int n>
  static CANDOR_INLINE void store_sums(float* acc, int64_t acc_stride, F32 (*total)[n]) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) store(acc + p * acc_stride + 16 * r, total[p][r]);
    }
  }

  // chains[p][r] += x[r][k] * w[p][k].
  template <int n, bool odd, class Source>
  static CANDOR_INLINE void add_k(const Source& weights, const RowTile<n>& rows, int k, F32 (*chains)[n]) {
    F32 w[kPanelsOf<n>];
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) w[p] = weights.template value<odd>(p, k);
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanelsOf<n>; ++p) chains[p][r] = fma_scalar(w[p], rows.rows[r] + k, chains[p][r]);
    }
  }

  struct KRange {
    int begin;
    int end;
  };
  // The even k onto one chain, the odd ones onto another (or the same).
  template <int n, class Source>
  static CANDOR_INLINE void add_range(const Source& weights, const RowTile<n>& rows, KRange range, F32 (*even)[n],
                                      F32 (*odd)[n]) {
    int k = range.begin;
    for (; k + 1 < range.end; k += 2) {
      add_k<n, false>(weights, rows, k, even);
      add_k<n, true>(weights, rows, k + 1, odd);
    }
    if (k < range.end) add_k<n, false>(weights, rows, k, even);
  }

  // The order of TDPBF16PS: two chains from zero, then their sum onto the total.
  template <int n, class Source>
  static CANDOR_INLINE void add_chains(const Source& weights, const RowTile<n>& rows, KRange range, float* acc,
                                       int64_t acc_stride) {
    F32 even[kPanelsOf<n>][n];
    F32 odd[kPanelsOf<n>][n];
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) even[p][r] = odd[p][r] = splat(0.0f);
    }
    add_range<n>(weights, rows, range, even, odd);
#pragma GCC unroll 2
    for (int p = 0; p < kPanelsOf<n>; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) {
        float* dst = acc + p * acc_stride + 16 * r;
        store(dst, add(load(dst), add(even[p][r], odd[p][r])));
      }
    }
  }
};
