// Matrix products on packed weights. A unit (256 k of 16 outputs) is unpacked once and used for all rows of the chunk.
// Orders of the float operations: docs/numerics.md, "Products".

// What a row brings to one unit.
struct alignas(64) PreparedRow {
  int32_t starts[16];  // of the dots: -offset * sum of x
  int32_t pairs[8];    // sums of x of two sub-scale groups
  float sums[8];       // 32-blocks: sums of x
  float scales[8];
  const std::byte* data;  // codes, or f32
};

constexpr int32_t kSmallRows = 16;  // up to here a panel is finished before the next is begun: one stream
constexpr int64_t kPanelGroup = 8;  // panels that share one pass over the rows' unit, above

inline int32_t pair_of(int low, int high) {
  return static_cast<int32_t>((static_cast<uint32_t>(high) << 16) | (static_cast<uint32_t>(low) & 0xffffu));
}

template <DType dtype>
struct BlockProduct {
  using Unit = BlockUnit;
  using Traits = BlockTraits<dtype>;
  static constexpr PackedFormat kPacked = Traits::kPacked;

  static size_t bytes_of_unit(int n_k) { return unit_bytes(kPacked, n_k); }

  static const Unit* unpack(const uint8_t* src, int n_k, Unit& unit) {
    unpack_unit<dtype>(src, n_k, unit);
    return &unit;
  }

  static void prepare(const std::byte* row, int64_t n_in, int64_t k, int n_k, PreparedRow& dst) {
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
        dst.sums[b] = static_cast<float>(sums[k / 32 + b]);
        dst.scales[b] = scales[k / 32 + b];
      }
    }
  }

  static void prepare_super(const int16_t* sums, PreparedRow& dst) {
    if constexpr (Traits::kDotGroups == 4) {
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

  // dots[r] = dot of the kDotGroups groups of 4 k from `group`.
  template <int n_rows>
  static inline __attribute__((always_inline)) void dots(const Unit& unit, const PreparedRow* rows, int dot,
                                                         I32* sums) {
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) sums[r] = splat_i(rows[r].starts[dot]);
#pragma GCC unroll 8
    for (int g = 0; g < Traits::kDotGroups; ++g) {
      const int group = dot * Traits::kDotGroups + g;
      const U8 w = load_u(unit.codes[group]);
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) {
        sums[r] = dot4<Traits::kIsWide>(sums[r], w, reinterpret_cast<const int8_t*>(rows[r].data) + 4 * group);
      }
    }
  }

  template <int n_rows>
  static void tile(const Unit& unit, int n_k, const PreparedRow* rows, float* acc) {
    if constexpr (kPacked.is_super) {
      tile_super<n_rows>(unit, rows, acc);
    } else {
      tile_32<n_rows>(unit, n_k, rows, acc);
    }
  }

  template <int n_rows>
  static void tile_super(const Unit& unit, const PreparedRow* rows, float* acc) {
    I32 total[n_rows];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) total[r] = splat_i(0);
    constexpr int kDots = kUnit / 4 / Traits::kDotGroups;
    for (int j = 0; j < kDots; ++j) {
      I32 sums[n_rows];
      dots<n_rows>(unit, rows, j, sums);
      const I32 scale = load_i(unit.scales[j * kPacked.n_groups / kDots]);
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) {
        total[r] = Traits::kFits16 ? madd16(total[r], sums[r], scale) : add_i(total[r], mul_i(sums[r], scale));
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) finish_super(unit, rows[r], total[r], acc + 16 * r);
  }

  static inline __attribute__((always_inline)) void finish_super(const Unit& unit, const PreparedRow& row, I32 total,
                                                                 float* acc) {
    const F32 d = load(unit.d[0]);
    if constexpr (Traits::kBiasShift != 0) {
      I32 bias = splat_i(0);
#pragma GCC unroll 4
      for (int p = 0; p < kPacked.n_groups / 2; ++p) bias = dot2(bias, load_i(unit.scale_pairs[p]), row.pairs[p]);
      total = add_i(total, shl_i<Traits::kBiasShift>(bias));
    }
    F32 u = mul(d, to_f32(total));
    if constexpr (kPacked.has_min) {
      I32 mins = splat_i(0);
#pragma GCC unroll 8
      for (int p = 0; p < kPacked.n_groups / 2; ++p) mins = dot2(mins, load_i(unit.min_pairs[p]), row.pairs[p]);
      const F32 minus = mul(mul(load(unit.m[0]), to_f32(mins)), splat(-1.0f));
      u = fma(d, to_f32(total), minus);
    }
    store(acc, fma_scalar(u, row.scales, load(acc)));
  }

  template <int n_rows>
  static void tile_32(const Unit& unit, int n_k, const PreparedRow* rows, float* acc) {
    F32 total[n_rows];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) total[r] = load(acc + 16 * r);
    for (int b = 0; b < n_k / 32; ++b) {
      I32 sums[n_rows];
      dots<n_rows>(unit, rows, b, sums);
      const F32 d = load(unit.d[b]);
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) {
        const F32 dx = splat(rows[r].scales[b]);
        total[r] = fma(mul(d, dx), to_f32(sums[r]), total[r]);
        if constexpr (kPacked.has_min) {
          total[r] = fma(mul(load(unit.m[b]), dx), splat(rows[r].sums[b]), total[r]);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) store(acc + 16 * r, total[r]);
  }
};

struct alignas(64) FloatUnit {
  float w[kUnit][16];
};

constexpr size_t kPrefetchF32Bytes = 16384;  // a unit ahead: F32 panels are read in place

template <DType dtype>
struct FloatProduct {
  using Unit = FloatUnit;

  static size_t bytes_of_unit(int n_k) {
    if (dtype == DType::kF32) return static_cast<size_t>(n_k) * 64;
    return static_cast<size_t>(dtype == DType::kBF16 ? (n_k + 1) / 2 * 2 : n_k) * 32;
  }

  static void prepare(const std::byte* row, int64_t, int64_t k, int, PreparedRow& dst) { dst.data = row + k * 4; }

  static const Unit* unpack(const uint8_t* src, int n_k, Unit& unit) {
    if constexpr (dtype == DType::kF32) {
      for (int k = 0; k < n_k; ++k) prefetch(src + 64 * k + kPrefetchF32Bytes);
      return reinterpret_cast<const Unit*>(src);
    } else if constexpr (dtype == DType::kF16) {
      for (int k = 0; k < n_k; ++k) {
        prefetch(src + 32 * k + kPrefetchBytes);
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

  template <int n_rows>
  static void tile(const Unit& unit, int n_k, const PreparedRow* rows, float* acc) {
    const float* x[n_rows];
    F32 total[n_rows];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) {
      x[r] = reinterpret_cast<const float*>(rows[r].data);
      total[r] = load(acc + 16 * r);
    }
    if constexpr (dtype == DType::kBF16) {
      for (int k = 0; k < n_k; k += 32) add_32<n_rows>(unit, x, k, n_k - k < 32 ? n_k - k : 32, total);
    } else {
      for (int k = 0; k < n_k; ++k) {
        const F32 w = load(unit.w[k]);
#pragma GCC unroll 8
        for (int r = 0; r < n_rows; ++r) total[r] = fma_scalar(w, x[r] + k, total[r]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) store(acc + 16 * r, total[r]);
  }

  // The order of TDPBF16PS: two chains from zero, then their sum onto the total.
  template <int n_rows>
  static inline __attribute__((always_inline)) void add_32(const Unit& unit, const float* const* x, int first, int n,
                                                           F32* total) {
    F32 even[n_rows];
    F32 odd[n_rows];
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) even[r] = odd[r] = splat(0.0f);
    for (int k = first; k + 1 < first + n; k += 2) {
      const F32 w0 = load(unit.w[k]);
      const F32 w1 = load(unit.w[k + 1]);
#pragma GCC unroll 8
      for (int r = 0; r < n_rows; ++r) {
        even[r] = fma_scalar(w0, x[r] + k, even[r]);
        odd[r] = fma_scalar(w1, x[r] + k + 1, odd[r]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_rows; ++r) {
      if (n % 2 != 0) even[r] = fma_scalar(load(unit.w[first + n - 1]), x[r] + first + n - 1, even[r]);
      total[r] = add(total[r], add(even[r], odd[r]));
    }
  }
};

template <class Product, int n_tile>
inline void multiply_rows(const typename Product::Unit& unit, int n_k, const PreparedRow* rows, int32_t n_rows,
                          float* acc) {
  int32_t r = 0;
  for (; r + n_tile <= n_rows; r += n_tile) Product::template tile<n_tile>(unit, n_k, rows + r, acc + 16 * r);
  if constexpr (n_tile > 1) multiply_rows<Product, n_tile / 2>(unit, n_k, rows + r, n_rows - r, acc + 16 * r);
}

// Where a chunk's working memory lies in MatmulArgs::scratch.
template <class Product>
struct MatmulScratch {
  typename Product::Unit* unit;
  float* acc;         // [panel of the group][row][16]
  PreparedRow* rows;  // small chunks: [unit][row]; else of one unit: [row]
  explicit MatmulScratch(std::byte* base)
      : unit(reinterpret_cast<typename Product::Unit*>(base)),
        acc(reinterpret_cast<float*>(base + kScratchUnitBytes)),
        rows(reinterpret_cast<PreparedRow*>(base + kScratchUnitBytes + kScratchSumBytes)) {
    static_assert(sizeof(typename Product::Unit) <= kScratchUnitBytes);
    static_assert(kPanelGroup * kMatmulRows * kPanelRows * sizeof(float) <= kScratchSumBytes);
    static_assert(sizeof(PreparedRow) <= kScratchRowBytes && kSmallRows <= kScratchSmallRows);
  }
};

template <class Product>
inline void prepare_rows(const MatmulArgs& a, int32_t first_row, int32_t n_rows, int64_t k, PreparedRow* dst) {
  const int n_k = static_cast<int>(a.shape.n_in - k < kUnit ? a.shape.n_in - k : kUnit);
  const size_t stride = encoded_row_bytes(encoding_of(a.shape.dtype), a.shape.n_in);
  const std::byte* row = a.activations + static_cast<size_t>(first_row) * stride;
  for (int32_t r = 0; r < n_rows; ++r, row += stride) Product::prepare(row, a.shape.n_in, k, n_k, dst[r]);
}

inline void store_sums(const MatmulArgs& a, int64_t panel, int32_t first_row, int32_t n_rows, const float* acc) {
  const int64_t column = panel * kPanelRows;
  float* dst = a.dst + first_row * a.dst_stride + column;
  for (int32_t r = 0; r < n_rows; ++r, dst += a.dst_stride) store_part(dst, a.shape.n_out - column, load(acc + 16 * r));
}

// Rows [first_row, first_row + n_rows), at most kMatmulRows, of all panels of the range.
template <class Product>
inline void multiply_chunk(const MatmulArgs& a, int32_t first_row, int32_t n_rows) {
  const MatmulScratch<Product> scratch(a.scratch);
  const bool is_small = n_rows <= kSmallRows;
  const int64_t n_in = a.shape.n_in;
  const size_t stride = panel_bytes(a.shape);
  for (int64_t k = 0; is_small && k < n_in; k += kUnit) {
    prepare_rows<Product>(a, first_row, n_rows, k, scratch.rows + k / kUnit * n_rows);
  }
  for (int64_t p = a.panel_begin; p < a.panel_end;) {
    const int64_t left = a.panel_end - p;
    const int64_t n_group = is_small ? 1 : left < kPanelGroup ? left : kPanelGroup;
    const auto* src = reinterpret_cast<const uint8_t*>(a.weights) + static_cast<size_t>(p) * stride;
    std::memset(scratch.acc, 0, static_cast<size_t>(n_group * n_rows) * 64);
    for (int64_t k = 0; k < n_in; k += kUnit) {
      const int n_k = static_cast<int>(n_in - k < kUnit ? n_in - k : kUnit);
      if (!is_small) prepare_rows<Product>(a, first_row, n_rows, k, scratch.rows);
      const PreparedRow* rows = is_small ? scratch.rows + k / kUnit * n_rows : scratch.rows;
      for (int64_t i = 0; i < n_group; ++i) {
        const auto* unit = Product::unpack(src + static_cast<size_t>(i) * stride, n_k, *scratch.unit);
        multiply_rows<Product, kTileRows>(*unit, n_k, rows, n_rows, scratch.acc + i * n_rows * 16);
      }
      src += Product::bytes_of_unit(n_k);
    }
    for (int64_t i = 0; i < n_group; ++i) store_sums(a, p + i, first_row, n_rows, scratch.acc + i * n_rows * 16);
    p += n_group;
  }
}

template <class Product>
inline void multiply(const MatmulArgs& a) {
  for (int32_t row = 0; row < a.n_rows; row += kMatmulRows) {
    multiply_chunk<Product>(a, row, a.n_rows - row < kMatmulRows ? a.n_rows - row : kMatmulRows);
  }
}

inline void matmul(const MatmulArgs& a) {
  switch (a.shape.dtype) {
    case DType::kF32:
      return multiply<FloatProduct<DType::kF32>>(a);
    case DType::kF16:
      return multiply<FloatProduct<DType::kF16>>(a);
    case DType::kBF16:
      return multiply<FloatProduct<DType::kBF16>>(a);
    case DType::kQ8_0:
      return multiply<BlockProduct<DType::kQ8_0>>(a);
    case DType::kQ4_0:
      return multiply<BlockProduct<DType::kQ4_0>>(a);
    case DType::kQ4_1:
      return multiply<BlockProduct<DType::kQ4_1>>(a);
    case DType::kQ5_0:
      return multiply<BlockProduct<DType::kQ5_0>>(a);
    case DType::kQ5_1:
      return multiply<BlockProduct<DType::kQ5_1>>(a);
    case DType::kIQ4_NL:
      return multiply<BlockProduct<DType::kIQ4_NL>>(a);
    case DType::kMXFP4:
      return multiply<BlockProduct<DType::kMXFP4>>(a);
    case DType::kQ2_K:
      return multiply<BlockProduct<DType::kQ2_K>>(a);
    case DType::kQ3_K:
      return multiply<BlockProduct<DType::kQ3_K>>(a);
    case DType::kQ4_K:
      return multiply<BlockProduct<DType::kQ4_K>>(a);
    case DType::kQ5_K:
      return multiply<BlockProduct<DType::kQ5_K>>(a);
    case DType::kQ6_K:
      return multiply<BlockProduct<DType::kQ6_K>>(a);
    case DType::kIQ4_XS:
      return multiply<BlockProduct<DType::kIQ4_XS>>(a);
    default:
      return;
  }
}
