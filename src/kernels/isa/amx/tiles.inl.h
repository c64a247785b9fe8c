// What products on AMX's tile registers share. Each kind of weights has a class of its own that walks over panels and
// rows (matmul_*.inl.h): a unit becomes tiles once and serves all rows of a chunk, a few panels are walked together.
// Bits: docs/numerics.md; integer sums are exact, and the order of a bf16 product is the tile's own.

constexpr int32_t kTileChunkRows = 512;  // of one unpacking
constexpr int64_t kGroupPanels = 8;       // walked together
constexpr int64_t kMostGroupPanels = 16;  // of fewer rows
// Fewer rows are left to vector instructions. The codes of Q6_K take longest to split.
constexpr int32_t kTileMinRows = 10;
constexpr int32_t kTileMinRowsQ6K = 14;
constexpr int32_t kTileMinRowsBf16 = 7;
// By counting: from 6 on a core of one's own, from 10 where each of its 36 tile operations takes 10 ns.
constexpr int32_t kTileMinRowsBlocks = 10;

// Rows of the left operand, from one k on.
struct TileOperand {
  const std::byte* data;
  size_t stride;
};

enum class TileDot { kSigned, kUnsigned };  // the right operand

template <class Tiles, TileDot dot, int c, int a, int b>
inline void tile_dot(Tiles& tiles) {
  if constexpr (dot == TileDot::kSigned) tiles.template dot_signed<c, a, b>();
  if constexpr (dot == TileDot::kUnsigned) tiles.template dot_unsigned<c, a, b>();
}

// Tiles 0 to n - 1 hold sums; n is 1, 2 or 4.
template <class Tiles, int n>
inline void zero_sums(Tiles& tiles) {
  static_assert(n == 1 || n == 2 || n == 4);
  tiles.template zero<0>();
  if constexpr (n > 1) tiles.template zero<1>();
  if constexpr (n > 2) {
    tiles.template zero<2>();
    tiles.template zero<3>();
  }
}

// Tile i from src + i * apart, rows stride_bytes apart.
template <class Tiles, int n>
inline void load_tiles(Tiles& tiles, const float* src, int64_t apart, size_t stride_bytes) {
  static_assert(n == 1 || n == 2 || n == 4);
  tiles.template load<0>(src, stride_bytes);
  if constexpr (n > 1) tiles.template load<1>(src + apart, stride_bytes);
  if constexpr (n > 2) {
    tiles.template load<2>(src + 2 * apart, stride_bytes);
    tiles.template load<3>(src + 3 * apart, stride_bytes);
  }
}
template <class Tiles, int n>
inline void store_tiles(Tiles& tiles, float* dst, int64_t apart, size_t stride_bytes) {
  static_assert(n == 1 || n == 2 || n == 4);
  tiles.template store<0>(dst, stride_bytes);
  if constexpr (n > 1) tiles.template store<1>(dst + apart, stride_bytes);
  if constexpr (n > 2) {
    tiles.template store<2>(dst + 2 * apart, stride_bytes);
    tiles.template store<3>(dst + 3 * apart, stride_bytes);
  }
}

constexpr int32_t kRowsAhead = 8;

// acc: [n_panels][panel_rows][16] sums, of n_rows of them. Row by row, as the panels' outputs lie side by side there;
// rows are far apart, so their lines are prefetched.
inline void store_rows(const MatmulArgs& m, int64_t panel, int64_t n_panels, int32_t first_row, int32_t n_rows,
                       const float (*acc)[16], int64_t panel_rows) {
  float* dst = m.dst + first_row * m.dst_stride + panel * kPanelRows;
  for (int32_t r = 0; r < n_rows; ++r, dst += m.dst_stride) {
    if (r + kRowsAhead < n_rows) {
      for (int64_t i = 0; i < n_panels; ++i) {
        prefetch(dst + kRowsAhead * m.dst_stride + i * kPanelRows);
      }
    }
    for (int64_t i = 0; i < n_panels; ++i) {
      store_part(dst + i * kPanelRows, m.shape.n_out - (panel + i) * kPanelRows, load(acc[i * panel_rows + r]));
    }
  }
}

// Walk::chunk(first row, n_rows) for all rows, at most kTileChunkRows at a time.
template <class Tiles, class Walk>
inline void multiply_chunks(const MatmulArgs& m) {
  Tiles tiles(Walk::config(m.n_rows));
  Walk walk(tiles, m);
  for (int32_t row = 0; row < m.n_rows; row += kTileChunkRows) {
    walk.chunk(row, m.n_rows - row < kTileChunkRows ? m.n_rows - row : kTileChunkRows);
  }
}

template <template <class, DType> class Walk, class Tiles, KernelFamily family, class Block>
inline bool walk_if(const MatmulArgs& m) {
  if constexpr (Block::kFamily == family) {
    if (m.shape.dtype != Block::kType) return false;
    multiply_chunks<Tiles, Walk<Tiles, Block::kType>>(m);
    return true;
  }
  return false;
}

// REQUIRES: weights of this family.
template <template <class, DType> class Walk, class Tiles, KernelFamily family, class... Blocks>
inline void walk_family(const MatmulArgs& m, BlockList<Blocks...>) {
  static_cast<void>((walk_if<Walk, Tiles, family, Blocks>(m) || ...));
}
