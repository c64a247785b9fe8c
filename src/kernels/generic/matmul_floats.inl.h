// Products with float weights, a unit of 128 k at a time. Orders: docs/numerics.md, "Products".

constexpr int kFloatDepth = 128;  // units of two panels and the rows of a tile stay in the first-level cache

struct alignas(64) FloatUnit {
  float w[kFloatDepth][16];
};

constexpr size_t kPrefetchF32Bytes = 8192;  // a unit ahead: F32 panels are read in place

template <DType dtype>
struct FloatProduct {
  using Unit = FloatUnit;
  static constexpr bool kIsBf16 = dtype == DType::kBF16;
  static constexpr int kDepth = kFloatDepth;
  static constexpr int kRows = kIsBf16 ? kTileRowsBf16 : kTileRowsF32;

  struct Row {
    const std::byte* data;  // f32
  };

  static size_t bytes_of_unit(int n_k) {
    if (dtype == DType::kF32) return static_cast<size_t>(n_k) * 64;
    return static_cast<size_t>(kIsBf16 ? (n_k + 1) / 2 * 2 : n_k) * 32;
  }

  static void prepare(const std::byte* row, int64_t, int64_t k, int, Row& dst) { dst.data = row + k * 4; }

  static const Unit* unpack(const uint8_t* src, int n_k, Unit& unit) {
    if constexpr (dtype == DType::kF32) {
      for (int k = 0; k < n_k; ++k) {
        prefetch(src + 64 * k + kPrefetchF32Bytes);
        store(unit.w[k], load(reinterpret_cast<const float*>(src) + 16 * k));
      }
    } else if constexpr (dtype == DType::kF16) {
      for (int k = 0; k < n_k; ++k) {
        if (k % 2 == 0) prefetch(src + 32 * k + kPrefetchBytes);
        store(unit.w[k], load_f16(src + 32 * k));
      }
    } else {
      for (int k = 0; k < n_k; k += 2) {
        const I32 pairs = load_i(reinterpret_cast<const int32_t*>(src + 32 * k));
        prefetch(src + 32 * k + kPrefetchBytes);
        store(unit.w[k], even_bf16(pairs));
        store(unit.w[k + 1], odd_bf16(pairs));
      }
    }
    return &unit;
  }

  // acc: [kDotPanels], acc_stride apart, of [n_rows][16].
  template <int n_rows>
  static void tile(const Unit* units, int n_k, const Row* rows, float* acc, int64_t acc_stride) {
    if constexpr (kIsBf16) {
      for (int k = 0; k < n_k; k += 32) {
        add_32<n_rows>(units, rows, {k, n_k - k < 32 ? n_k : k + 32}, acc, acc_stride);
      }
    } else {
      add_all<n_rows>(units, n_k, rows, acc, acc_stride);
    }
  }

  static const float* values(const Row& row) { return reinterpret_cast<const float*>(row.data); }

  // chains[p][r] += x[r][k] * w[p][k].
  template <int n_rows>
  static inline __attribute__((always_inline)) void add_k(const Unit* units, const Row* rows, int k,
                                                          F32 (*chains)[n_rows]) {
    F32 w[kDotPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) w[p] = load(units[p].w[k]);
#pragma GCC unroll 16
    for (int r = 0; r < n_rows; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kDotPanels; ++p) chains[p][r] = fma_scalar(w[p], values(rows[r]) + k, chains[p][r]);
    }
  }

  template <int n_rows>
  static void add_all(const Unit* units, int n_k, const Row* rows, float* acc, int64_t acc_stride) {
    F32 total[kDotPanels][n_rows];
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n_rows; ++r) total[p][r] = load(acc + p * acc_stride + 16 * r);
    }
#pragma GCC unroll 2
    for (int k = 0; k < n_k; ++k) add_k<n_rows>(units, rows, k, total);
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < n_rows; ++r) store(acc + p * acc_stride + 16 * r, total[p][r]);
    }
  }

  struct KRange {
    int begin;
    int end;
  };
  // The order of TDPBF16PS: two chains from zero, then their sum onto the total.
  template <int n_rows>
  static inline __attribute__((always_inline)) void add_32(const Unit* units, const Row* rows, KRange range, float* acc,
                                                           int64_t acc_stride) {
    F32 even[kDotPanels][n_rows];
    F32 odd[kDotPanels][n_rows];
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) {
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) even[p][r] = odd[p][r] = splat(0.0f);
    }
    int k = range.begin;
    for (; k + 1 < range.end; k += 2) {
      add_k<n_rows>(units, rows, k, even);
      add_k<n_rows>(units, rows, k + 1, odd);
    }
    if (k < range.end) add_k<n_rows>(units, rows, k, even);
#pragma GCC unroll 2
    for (int p = 0; p < kDotPanels; ++p) {
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) {
        float* dst = acc + p * acc_stride + 16 * r;
        store(dst, add(load(dst), add(even[p][r], odd[p][r])));
      }
    }
  }
};
