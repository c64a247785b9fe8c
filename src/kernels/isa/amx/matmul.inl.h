// Matrix products of many rows on tile registers. A panel's unit becomes int8 or bf16 tiles once and serves all rows of
// the chunk; two or four panels share one walk over the rows. Bits: docs/numerics.md; integer sums are exact, and the
// order of a bf16 product is the tile's own.

constexpr int32_t kTileChunkRows = 512;  // of one unpacking
constexpr int64_t kTilePanels = 4;       // at most so many share a walk: their tiles stay in the first cache
constexpr int32_t kTileMinRows = 17;     // fewer rows are the lanes' work: weights stream there

// What a row brings to one unit, besides its codes.
struct TileRow {
  int32_t integers[8];  // super-blocks: sums of x of two sub-scale groups; 32-blocks: starts of the dots
  float sums[8];        // 32-blocks: sums of x
  float scales[8];
};

// Sums of at most four tiles, as [row][16].
struct alignas(64) TileSums {
  int32_t sums[4][kTileRows16 * 16];
};

// Where a chunk's working memory lies in MatmulArgs::scratch.
struct TileScratch {
  SuperTiles super[kTilePanels];
  BlockUnit blocks[kTilePanels];
  TileSums sums;
  alignas(64) std::byte last_rows[kTileRows16][2 * kUnit];  // rows past the last whole tile of 16, then zeros
  alignas(64) TileRow rows[kTileChunkRows];
  alignas(64) float acc[kTilePanels][kTileChunkRows][16];
};
static_assert(sizeof(TileScratch) <= kScratchTileBytes);

// Rows of the left operand, from one k on.
struct TileOperand {
  const std::byte* data;
  size_t stride;
};

enum class TileDot { kSigned, kUnsigned, kBf16 };

template <class Tiles, TileDot dot, int c, int a, int b>
inline void tile_dot(Tiles& tiles) {
  if constexpr (dot == TileDot::kSigned) tiles.template dot_signed<c, a, b>();
  if constexpr (dot == TileDot::kUnsigned) tiles.template dot_unsigned<c, a, b>();
  if constexpr (dot == TileDot::kBf16) tiles.template dot_bf16<c, a, b>();
}

// One step of k for row tiles r .. n - 1: b (planes in 6 and 7) is loaded. Sum (row tile, plane) is r * planes + plane.
template <class Tiles, TileDot dot, int n, int n_planes, int r = 0>
inline void tile_step(Tiles& tiles, const std::byte* a, size_t stride) {
  constexpr int kA = 4 + r % 2;
  tiles.template load<kA>(a + static_cast<size_t>(r * kTileRows16) * stride, stride);
  tile_dot<Tiles, dot, r * n_planes, kA, 6>(tiles);
  if constexpr (n_planes == 2) tile_dot<Tiles, dot, r * n_planes + 1, kA, 7>(tiles);
  if constexpr (r + 1 < n) tile_step<Tiles, dot, n, n_planes, r + 1>(tiles, a, stride);
}

template <class Tiles, int n, int i = 0>
inline void zero_sums(Tiles& tiles) {
  tiles.template zero<i>();
  if constexpr (i + 1 < n) zero_sums<Tiles, n, i + 1>(tiles);
}
// sums: tiles of 16 rows of 16, one after another.
template <class Tiles, int n, int i = 0>
inline void load_sums(Tiles& tiles, const float* sums) {
  tiles.template load<i>(sums + i * kTileRows16 * 16, 64);
  if constexpr (i + 1 < n) load_sums<Tiles, n, i + 1>(tiles, sums);
}
template <class Tiles, int n, class T, int i = 0>
inline void store_sums(Tiles& tiles, T* sums) {
  tiles.template store<i>(sums + i * kTileRows16 * 16, 64);
  if constexpr (i + 1 < n) store_sums<Tiles, n, T, i + 1>(tiles, sums);
}

// Super-blocks: 256 k in one go, then one sequence of float operations.
template <class Tiles, DType dtype>
struct SuperProduct {
  using Unit = SuperTiles;
  static constexpr const TileConfig& kConfig = kDeepTiles;
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;
  static constexpr int kMaxTiles = 4 / kPlanes<dtype>;
  static constexpr int64_t kPanels = 4 / kPlanes<dtype>;

  static size_t bytes_of_unit(int n_k) { return unit_bytes(kPacked, n_k); }
  static size_t operand_offset(int64_t, int64_t k) { return static_cast<size_t>(k); }
  static size_t operand_bytes(int n_k) { return static_cast<size_t>(n_k); }

  static const Unit* unpack(const uint8_t* src, int n_k, TileScratch& s, int64_t i) {
    auto ahead = ahead_of<dtype>(src, n_k);
    if constexpr (BlockTraits<dtype>::kIsRebased) {
      rebase_unit<dtype>(src, s.blocks[0], s.super[i], ahead);
    } else {
      unpack_unit<dtype>(src, n_k, s.blocks[0], ahead);
      split_unit<dtype>(s.blocks[0], s.super[i]);
    }
    return &s.super[i];
  }

  static void prepare(const std::byte* row, int64_t n_in, int64_t k, int, TileRow& dst) {
    const auto* sums = reinterpret_cast<const int16_t*>(row + encoded_sums_offset(Encoding::kQ8x256, n_in)) + k / 16;
    const auto* scales = reinterpret_cast<const float*>(row + encoded_scales_offset(Encoding::kQ8x256, n_in));
    dst.scales[0] = scales[k / kUnit];
    if constexpr (kPacked.has_min && kPacked.n_groups == 16) std::memcpy(dst.integers, sums, sizeof dst.integers);
    if constexpr (kPacked.has_min && kPacked.n_groups == 8) {
      for (int p = 0; p < 4; ++p) {
        const int low = sums[4 * p] + sums[4 * p + 1];
        const int high = sums[4 * p + 2] + sums[4 * p + 3];
        dst.integers[p] =
            static_cast<int32_t>((static_cast<uint32_t>(high) << 16) | (static_cast<uint32_t>(low) & 0xffffu));
      }
    }
  }

  template <int n>
  static void tile(Tiles& tiles, const Unit& unit, int, TileOperand a, const TileRow* rows, TileSums& out, float* acc) {
    constexpr int kN = kPlanes<dtype>;
    zero_sums<Tiles, n * kN>(tiles);
    for (int g = 0; g < kUnit / 4; g += 16) {
      tiles.template load<6>(unit.planes[0][g], 64);
      if constexpr (kN == 2) tiles.template load<7>(unit.planes[1][g], 64);
      tile_step<Tiles, TileDot::kSigned, n, kN>(tiles, a.data + 4 * g, a.stride);
    }
    store_sums<Tiles, n * kN>(tiles, out.sums[0]);
    for (int r = 0; r < n * kTileRows16; ++r) {
      const int32_t* low = out.sums[r / kTileRows16 * kN] + r % kTileRows16 * 16;
      I32 total = load_i(low);
      if constexpr (kN == 2) total = add_i(total, shl_i<kPlaneShift>(load_i(low + kTileRows16 * 16)));
      finish(unit, rows[r], total, acc + 16 * r);
    }
  }

  static inline __attribute__((always_inline)) void finish(const Unit& unit, const TileRow& row, I32 total,
                                                           float* acc) {
    const F32 d = load(unit.d);
    F32 u = mul(d, to_f32(total));
    if constexpr (kPacked.has_min) {
      I32 mins = splat_i(0);
#pragma GCC unroll 8
      for (int p = 0; p < kPacked.n_groups / 2; ++p) mins = dot2(mins, load_i(unit.min_pairs[p]), row.integers[p]);
      u = fma(d, to_f32(total), mul(load(unit.minus_m), to_f32(mins)));
    }
    store(acc, fma_scalar(u, row.scales, load(acc)));
  }
};

// 32-blocks: every 32 k have scales of their own on both sides.
template <class Tiles, DType dtype>
struct BlockProduct {
  using Unit = BlockUnit;
  static constexpr const TileConfig& kConfig = kShallowTiles;
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;
  static constexpr int kMaxTiles = 4;
  static constexpr int64_t kPanels = 4;

  static size_t bytes_of_unit(int n_k) { return unit_bytes(kPacked, n_k); }
  static size_t operand_offset(int64_t, int64_t k) { return static_cast<size_t>(k); }
  static size_t operand_bytes(int n_k) { return static_cast<size_t>(n_k); }

  static const Unit* unpack(const uint8_t* src, int n_k, TileScratch& s, int64_t i) {
    auto ahead = ahead_of<dtype>(src, n_k);
    unpack_unit<dtype>(src, n_k, s.blocks[i], ahead);
    return &s.blocks[i];
  }

  static void prepare(const std::byte* row, int64_t n_in, int64_t k, int n_k, TileRow& dst) {
    const auto* sums = reinterpret_cast<const int16_t*>(row + encoded_sums_offset(Encoding::kQ8x32, n_in)) + k / 32;
    const auto* scales = reinterpret_cast<const float*>(row + encoded_scales_offset(Encoding::kQ8x32, n_in)) + k / 32;
    for (int b = 0; b < n_k / 32; ++b) {
      dst.integers[b] = -BlockTraits<dtype>::kOffset * sums[b];
      dst.sums[b] = static_cast<float>(sums[b]);
      dst.scales[b] = scales[b];
    }
  }

  template <int n>
  static void tile(Tiles& tiles, const Unit& unit, int n_k, TileOperand a, const TileRow* rows, TileSums& out,
                   float* acc) {
    for (int b = 0; b < n_k / 32; ++b) {
      zero_sums<Tiles, n>(tiles);
      tiles.template load<6>(unit.codes[8 * b], 64);
      tile_step<Tiles, TileDot::kUnsigned, n, 1>(tiles, a.data + 32 * b, a.stride);
      store_sums<Tiles, n>(tiles, out.sums[0]);
      const F32 d = load(unit.d[b]);
      for (int r = 0; r < n * kTileRows16; ++r) {
        const I32 sum = add_i(load_i(out.sums[0] + 16 * r), splat_i(rows[r].integers[b]));
        const F32 dx = splat(rows[r].scales[b]);
        F32 total = fma(mul(d, dx), to_f32(sum), load(acc + 16 * r));
        if constexpr (kPacked.has_min) total = fma(mul(load(unit.m[b]), dx), splat(rows[r].sums[b]), total);
        store(acc + 16 * r, total);
      }
    }
  }
};

// bf16: the packed panel is the right operand as it lies.
template <class Tiles>
struct HalfProduct {
  using Unit = uint8_t;
  static constexpr const TileConfig& kConfig = kDeepTiles;
  static constexpr int kMaxTiles = 4;
  static constexpr int64_t kPanels = 4;

  static size_t bytes_of_unit(int n_k) { return static_cast<size_t>(n_k) * 32; }
  static size_t operand_offset(int64_t n_in, int64_t k) {
    return encoded_halves_offset(n_in) + static_cast<size_t>(k) * 2;
  }
  static size_t operand_bytes(int n_k) { return static_cast<size_t>(n_k) * 2; }

  static const Unit* unpack(const uint8_t* src, int, TileScratch&, int64_t) { return src; }
  static void prepare(const std::byte*, int64_t, int64_t, int, TileRow&) {}

  template <int n>
  static void tile(Tiles& tiles, const Unit& unit, int n_k, TileOperand a, const TileRow*, TileSums&, float* acc) {
    load_sums<Tiles, n>(tiles, acc);
    for (int k = 0; k < n_k; k += 32) {
      tiles.template load<6>(&unit + 32 * k, 64);
      tile_step<Tiles, TileDot::kBf16, n, 1>(tiles, a.data + 2 * k, a.stride);
    }
    store_sums<Tiles, n>(tiles, acc);
  }
};

// A chunk of rows at one unit.
struct TileRows {
  TileOperand a;
  int32_t n_rows;
  int n_k;
};

template <class Product>
inline TileRows prepare_rows(const MatmulArgs& m, int32_t first_row, int32_t n_rows, int64_t k, TileScratch& s) {
  const int n_k = static_cast<int>(m.shape.n_in - k < kUnit ? m.shape.n_in - k : kUnit);
  const size_t stride = encoded_row_bytes(encoding_of(m.shape.dtype), m.shape.n_in);
  const std::byte* row = m.activations + static_cast<size_t>(first_row) * stride;
  const TileOperand a = {row + Product::operand_offset(m.shape.n_in, k), stride};
  const int32_t n_whole = n_rows / kTileRows16 * kTileRows16;
  for (int32_t r = n_whole; r < n_rows; ++r) {
    std::memcpy(s.last_rows[r - n_whole], a.data + static_cast<size_t>(r) * stride, Product::operand_bytes(n_k));
  }
  for (int32_t r = 0; r < n_rows; ++r, row += stride) Product::prepare(row, m.shape.n_in, k, n_k, s.rows[r]);
  return {a, n_rows, n_k};
}

// The units of the panels of a walk, and their sums.
template <class Unit>
struct TileGroup {
  const Unit* units[kTilePanels];
  int64_t n_panels;
};

template <class Tiles, class Product, int n>
inline void multiply_tiles(Tiles& tiles, const TileGroup<typename Product::Unit>& group, const TileRows& rows,
                           int32_t first, TileScratch& s) {
  int32_t r = first;
  for (; r + n * kTileRows16 <= rows.n_rows; r += n * kTileRows16) {
    const TileOperand a = {rows.a.data + static_cast<size_t>(r) * rows.a.stride, rows.a.stride};
    for (int64_t i = 0; i < group.n_panels; ++i) {
      Product::template tile<n>(tiles, *group.units[i], rows.n_k, a, s.rows + r, s.sums, s.acc[i][r]);
    }
  }
  if constexpr (n > 1) {
    multiply_tiles<Tiles, Product, n / 2>(tiles, group, rows, r, s);
  } else if (r < rows.n_rows) {
    const TileOperand a = {s.last_rows[0], sizeof s.last_rows[0]};
    for (int64_t i = 0; i < group.n_panels; ++i) {
      Product::template tile<1>(tiles, *group.units[i], rows.n_k, a, s.rows + r, s.sums, s.acc[i][r]);
    }
  }
}

inline void store_rows(const MatmulArgs& m, int64_t panel, int32_t first_row, int32_t n_rows, const float* acc) {
  const int64_t column = panel * kPanelRows;
  float* dst = m.dst + first_row * m.dst_stride + column;
  for (int32_t r = 0; r < n_rows; ++r, dst += m.dst_stride) store_part(dst, m.shape.n_out - column, load(acc + 16 * r));
}

// Rows [first_row, first_row + n_rows), at most kTileChunkRows, of n_group panels from `panel`.
template <class Tiles, class Product>
inline void multiply_group(Tiles& tiles, const MatmulArgs& m, int32_t first_row, int32_t n_rows, int64_t panel,
                           int64_t n_group) {
  auto& s = *reinterpret_cast<TileScratch*>(m.scratch);
  const size_t stride = panel_bytes(m.shape);
  const auto* src = reinterpret_cast<const uint8_t*>(m.weights) + static_cast<size_t>(panel) * stride;
  const int32_t n_padded = (n_rows + kTileRows16 - 1) / kTileRows16 * kTileRows16;
  std::memset(s.last_rows, 0, sizeof s.last_rows);
  std::memset(s.rows + n_rows, 0, static_cast<size_t>(n_padded - n_rows) * sizeof(TileRow));
  for (int64_t i = 0; i < n_group; ++i) std::memset(s.acc[i], 0, static_cast<size_t>(n_padded) * sizeof s.acc[0][0]);
  for (int64_t k = 0; k < m.shape.n_in; k += kUnit) {
    const TileRows rows = prepare_rows<Product>(m, first_row, n_rows, k, s);
    TileGroup<typename Product::Unit> group{{}, n_group};
    for (int64_t i = 0; i < n_group; ++i) {
      group.units[i] = Product::unpack(src + static_cast<size_t>(i) * stride, rows.n_k, s, i);
    }
    multiply_tiles<Tiles, Product, Product::kMaxTiles>(tiles, group, rows, 0, s);
    src += Product::bytes_of_unit(rows.n_k);
  }
  for (int64_t i = 0; i < n_group; ++i) store_rows(m, panel + i, first_row, n_rows, s.acc[i][0]);
}

template <class Tiles, class Product>
inline void multiply_all(const MatmulArgs& m) {
  Tiles tiles(Product::kConfig);
  for (int32_t row = 0; row < m.n_rows; row += kTileChunkRows) {
    const int32_t n_rows = m.n_rows - row < kTileChunkRows ? m.n_rows - row : kTileChunkRows;
    for (int64_t p = m.panel_begin; p < m.panel_end; p += Product::kPanels) {
      const int64_t left = m.panel_end - p;
      multiply_group<Tiles, Product>(tiles, m, row, n_rows, p, left < Product::kPanels ? left : Product::kPanels);
    }
  }
}
