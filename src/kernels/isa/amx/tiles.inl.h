// What products on tile registers share. Each format has a walk of its own over the panels and rows (matmul_*.inl.h): a
// panel's unit becomes tiles once and serves all rows of a chunk, a few panels are walked together. Bits:
// docs/numerics.md; integer sums are exact, and the order of a bf16 product is the tile's own.

constexpr int32_t kTileChunkRows = 512;  // of one unpacking
constexpr int64_t kGroupPanels = 8;      // walked together
constexpr int32_t kTileMinRows = 25;     // fewer leave too much of two tiles idle: the lanes' work
constexpr int32_t kTileMinRowsBf16 = 7;

// Sums of at most four tiles, as [row][16].
struct alignas(64) TileSums {
  int32_t sums[4][kTileRows16 * 16];
};

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

// One step of k for row tiles r .. n - 1 with the plane in 6: its sum for row tile r is r * n_planes.
template <class Tiles, int n, TileDot dot, int n_planes = 1, int r = 0>
inline void tile_step(Tiles& tiles, const std::byte* a, size_t stride) {
  constexpr int kA = 4 + r % 2;
  tiles.template load<kA>(a + static_cast<size_t>(r * kTileRows16) * stride, stride);
  tile_dot<Tiles, dot, r * n_planes, kA, 6>(tiles);
  if constexpr (r + 1 < n) tile_step<Tiles, n, dot, n_planes, r + 1>(tiles, a, stride);
}
// The same rows, at most two tiles of them, with a second plane in 7: sums r * 2 + 1.
template <class Tiles, int n, TileDot dot, int r = 0>
inline void second_tile_step(Tiles& tiles) {
  static_assert(n <= 2);
  tile_dot<Tiles, dot, r * 2 + 1, 4 + r, 7>(tiles);
  if constexpr (r + 1 < n) second_tile_step<Tiles, n, dot, r + 1>(tiles);
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

constexpr int32_t kRowsAhead = 8;

// acc: [n_panels] sums of a panel's rows. Row by row, as the panels' outputs lie side by side there; rows are far
// apart, so their lines are asked for before.
inline void store_rows(const MatmulArgs& m, int64_t panel, int64_t n_panels, int32_t first_row, int32_t n_rows,
                       const float (*acc)[kTileChunkRows][16]) {
  float* dst = m.dst + first_row * m.dst_stride + panel * kPanelRows;
  for (int32_t r = 0; r < n_rows; ++r, dst += m.dst_stride) {
    if (r + kRowsAhead < n_rows) {
      for (int64_t i = 0; i < n_panels; ++i) {
        prefetch(dst + kRowsAhead * m.dst_stride + i * kPanelRows);
      }
    }
    for (int64_t i = 0; i < n_panels; ++i) {
      store_part(dst + i * kPanelRows, m.shape.n_out - (panel + i) * kPanelRows, load(acc[i][r]));
    }
  }
}

// Walk::chunk(first row, n_rows) for all rows, at most kTileChunkRows at a time.
template <class Tiles, class Walk>
inline void multiply_chunks(const MatmulArgs& m) {
  Tiles tiles(kDeepTiles);
  Walk walk(tiles, m);
  for (int32_t row = 0; row < m.n_rows; row += kTileChunkRows) {
    walk.chunk(row, m.n_rows - row < kTileChunkRows ? m.n_rows - row : kTileChunkRows);
  }
}
