// Matrix products on packed weights (README.md draws them): how rows and weights are cut into pieces, for any format. A
// tile multiplies a few rows with units (some hundred k of 16 outputs) of a panel or two, its sums in registers. A tile
// or two take the weights as they are packed; for more, units are unpacked once.

constexpr int32_t kSmallRows = 24;
// Panels that share the prepared rows of a unit: up to kSmallRows few streams of weights, above few preparations.
constexpr int64_t kSmallPanelGroup = 4;
constexpr int64_t kPanelGroup = 16;
// The least prefetch distance: a tile of few rows is done with a unit before memory answers.
constexpr int64_t kPrefetchAheadBytes = 7168;
constexpr int64_t kMostUnitsAhead = 3;
// One row takes the panels one after another, as one stream. How far ahead of it: bytes of codes are multiplied faster
// than memory gives them, and more lines than the second-level cache can wait for (48 on Zen 4) would hold it up.
constexpr size_t kStreamAheadOfCodes = 8192;
constexpr size_t kStreamAheadOfBytes = 2304;

// These use what stands above them.
// clang-format off
#include "kernels/generic/row_tiles.inl.h"
#include "kernels/generic/matmul_blocks.inl.h"
#include "kernels/generic/matmul_grids.inl.h"
#include "kernels/generic/matmul_floats.inl.h"
// clang-format on

// Tiles have any size up to the largest, an even one above kMostDots, where their dots come in two halves. Short tiles
// of a chunk have two sizes; of others, rows that the last one lacks repeat its last one.
constexpr int smaller_tile(int n) {
  return n - 1 > kMostDots ? (n - 1) / 2 * 2 : n - 1;
}
constexpr int tile_size(int n_rows, int largest) {
  while (largest > 1 && n_rows <= smaller_tile(largest)) largest = smaller_tile(largest);
  return largest;
}

// The least tile of a chunk with more tiles than take the weights as they are packed.
constexpr int least_of_several(int largest) {
  return tile_size((largest + 1) / 2, largest);
}

template <class Product, int n>
constexpr size_t tile_bytes(int tile_rows) {
  if constexpr (n > 1) {
    if (tile_rows < n) return tile_bytes<Product, smaller_tile(n)>(tile_rows);
  }
  return sizeof(typename Product::template RowTile<n>);
}

// A chunk's rows and where its working memory lies in MatmulArgs::scratch.
template <class Product>
struct MatmulChunk {
  using FullTile = typename Product::template RowTile<Product::kRows>;

  typename Product::Unit* units;  // [kPanels]
  float* acc;                     // [panel of the group][padded row][16]
  RowLayout layout;
  size_t panel_stride;
  std::byte* tiles;  // small chunks: of every unit; else of one
  int32_t first_row;
  int32_t n_rows;
  int32_t n_tiles;  // of about one size: twenty rows are ten and ten, not sixteen and four
  int32_t tile_rows;
  int32_t n_full;        // tiles that have them, the first ones; the others have one less
  int64_t n_panels;      // that a tile takes
  int64_t panels_ahead;  // prefetch distance, in panels
  int prefetch_turns;    // steps from one prefetch to the next
  size_t bytes_of_tile;

  MatmulChunk(const MatmulArgs& a, int32_t first, int32_t n)
      : layout(a.shape.dtype, a.shape.n_in), panel_stride(panel_bytes(a.shape)), first_row(first), n_rows(n) {
    static_assert(Product::kPanels * sizeof(typename Product::Unit) <= kScratchUnitBytes);
    static_assert(kPanelGroup * kScratchRows * kPanelRows * sizeof(float) <= kScratchSumBytes);
    static_assert(sizeof(FullTile) <= kScratchRowBytes * Product::kRows);
    static_assert(sizeof(typename Product::template RowTile<1>) <= kScratchRowBytes);
    static_assert(Product::kDepth >= kScratchDepth && kSmallRows <= kScratchSmallRows);
    static_assert(kPanelGroup % Product::kPanels == 0 && kSmallPanelGroup % Product::kPanels == 0);
    units = reinterpret_cast<typename Product::Unit*>(a.scratch);
    acc = reinterpret_cast<float*>(a.scratch + kScratchUnitBytes);
    tiles = a.scratch + kScratchUnitBytes + kScratchSumBytes;
    n_tiles = (n + Product::kRows - 1) / Product::kRows;
    tile_rows = tile_size((n + n_tiles - 1) / n_tiles, Product::kRows);
    n_tiles = (n + tile_rows - 1) / tile_rows;
    const bool is_short = tile_rows <= kTileRows && smaller_tile(tile_rows) == tile_rows - 1;
    n_full = is_short ? n - n_tiles * (tile_rows - 1) : n_tiles;
    n_panels = Product::panels_of(tile_rows);
    bytes_of_tile = tile_bytes<Product, Product::kRows>(tile_rows);
    panels_ahead = n_panels * units_ahead();
    prefetch_turns = n_tiles + (is_read() ? 0 : static_cast<int>(n_panels));
  }

  int64_t units_ahead() const {
    const int64_t n = kPrefetchAheadBytes / (n_panels * static_cast<int64_t>(Product::bytes_of_unit(Product::kDepth)));
    if (n_tiles > 1 || n < 1) return 1;
    return n < kMostUnitsAhead ? n : kMostUnitsAhead;
  }
  int32_t rows_of(int32_t tile) const { return tile < n_full ? tile_rows : tile_rows - 1; }
  int32_t first_row_of(int32_t tile) const { return tile * tile_rows - (tile < n_full ? 0 : tile - n_full); }
  bool is_small() const { return n_rows <= kSmallRows; }
  bool is_stream() const { return n_rows == 1 && n_panels == 1; }
  int64_t largest_group() const { return is_stream() ? 1 : is_small() ? kSmallPanelGroup : kPanelGroup; }
  bool is_read() const { return n_tiles <= Product::kReadTiles; }
  int64_t acc_stride() const { return int64_t{16} * tile_rows * n_tiles; }
  size_t tiles_bytes() const { return static_cast<size_t>(n_tiles) * bytes_of_tile; }  // of one unit
};

template <class Product>
using PrefetcherOf = UnitPrefetcher<prefetch_lines(Product::bytes_of_unit(Product::kDepth), Product::kPrefetchSteps)>;

template <class Product>
inline int depth_at(const MatmulArgs& a, int64_t k) {
  return static_cast<int>(a.shape.n_in - k < Product::kDepth ? a.shape.n_in - k : Product::kDepth);
}

// n: at least the tile's rows.
template <class Product, int n>
inline void prepare_tile(const MatmulArgs& a, const MatmulChunk<Product>& chunk, int32_t i, int64_t k, std::byte* dst) {
  if constexpr (n > 1) {
    if (chunk.rows_of(i) < n) return prepare_tile<Product, smaller_tile(n)>(a, chunk, i, k, dst);
  }
  const int32_t first_row = chunk.first_row_of(i);
  const int32_t last = chunk.n_rows - 1;
  const std::byte* rows[n];
  for (int32_t r = 0; r < n; ++r) {
    const int32_t row = chunk.first_row + (first_row + r < last ? first_row + r : last);
    rows[r] = a.activations + static_cast<size_t>(row) * chunk.layout.stride;
  }
  auto* tile = reinterpret_cast<typename Product::template RowTile<n>*>(dst);
  tile->prepare(rows, chunk.layout, k, depth_at<Product>(a, k));
}

template <class Product>
inline void prepare_rows(const MatmulArgs& a, const MatmulChunk<Product>& chunk, int64_t k, std::byte* dst) {
  for (int32_t i = 0; i < chunk.n_tiles; ++i) {
    prepare_tile<Product, Product::kRows>(a, chunk, i, k, dst);
    dst += chunk.bytes_of_tile;
  }
}

// n_rows: the tile's, from least to n.
template <class Product, int n, int least, class Source>
inline void multiply_tile(const MatmulChunk<Product>& chunk, int32_t n_rows, const Source& weights, int n_k,
                          const std::byte* tile, float* acc, PrefetcherOf<Product>& prefetcher) {
  if constexpr (n > least) {
    if (n_rows < n) {
      return multiply_tile<Product, smaller_tile(n), least>(chunk, n_rows, weights, n_k, tile, acc, prefetcher);
    }
  }
  const auto& rows = *reinterpret_cast<const typename Product::template RowTile<n>*>(tile);
  Product::template tile<n>(weights, n_k, rows, acc, chunk.acc_stride(), prefetcher);
}

template <class Product, int least, class Source>
inline void multiply_tiles(const MatmulChunk<Product>& chunk, const Source& weights, int n_k, const std::byte* tiles,
                           float* acc, PrefetcherOf<Product>& prefetcher) {
  for (int32_t i = 0; i < chunk.n_tiles; ++i) {
    const int32_t n_rows = chunk.rows_of(i);
    multiply_tile<Product, Product::kRows, least>(chunk, n_rows, weights, n_k, tiles, acc, prefetcher);
    tiles += chunk.bytes_of_tile;
    acc += 16 * n_rows;
  }
}

// One unit of chunk.n_panels panels, `apart` bytes from one to the other.
template <class Product>
inline void multiply_panels(const MatmulChunk<Product>& chunk, const uint8_t* src, size_t apart, int n_k,
                            const std::byte* tiles, float* acc, PrefetcherOf<Product>& prefetcher) {
  if constexpr (Product::kReadTiles > 0) {
    if (chunk.is_read()) {
      const auto weights = Product::read(src, apart, n_k, chunk.n_panels, chunk.units);
      return multiply_tiles<Product, 1>(chunk, weights, n_k, tiles, acc, prefetcher);
    }
  }
  constexpr int kLeast = Product::kReadTiles > 0 ? least_of_several(Product::kRows) : 1;
  const auto weights = Product::unpack(src, apart, n_k, chunk.n_panels, chunk.units, prefetcher);
  multiply_tiles<Product, kLeast>(chunk, weights, n_k, tiles, acc, prefetcher);
}

inline void store_sums(const MatmulArgs& a, int64_t panel, int32_t first_row, int32_t n_rows, const float* acc) {
  const int64_t column = panel * kPanelRows;
  float* dst = a.dst + first_row * a.dst_stride + column;
  for (int32_t r = 0; r < n_rows; ++r, dst += a.dst_stride) store_part(dst, a.shape.n_out - column, load(acc + 16 * r));
}

// One unit of n_group panels. src: of the first; next: of the panel whose turn comes after them. What is
// prefetched may lie past the matrix.
template <class Product>
inline void multiply_unit(const MatmulChunk<Product>& chunk, const uint8_t* src, const uint8_t* next, int n_k,
                          int64_t n_group, const std::byte* tiles) {
  const size_t stride = chunk.panel_stride;
  const int64_t group_end = (n_group + chunk.n_panels - 1) / chunk.n_panels * chunk.n_panels;
  for (int64_t i = 0; i < n_group; i += chunk.n_panels) {
    const uint8_t* at = src + static_cast<size_t>(i) * stride;
    const int64_t panel_after = i + chunk.panels_ahead;
    const uint8_t* after = chunk.is_stream()         ? at + Product::kStreamAhead
                           : panel_after < group_end ? src + static_cast<size_t>(panel_after) * stride
                                                     : next + static_cast<size_t>(panel_after - group_end) * stride;
    PrefetcherOf<Product> prefetcher(after, Product::bytes_of_unit(n_k), chunk.n_panels, stride, chunk.prefetch_turns);
    // A panel without a partner is multiplied twice.
    const size_t apart = i + 1 < n_group ? stride : 0;
    multiply_panels<Product>(chunk, at, apart, n_k, tiles, chunk.acc + i * chunk.acc_stride(), prefetcher);
  }
}

// At most kMatmulRows rows of all panels of the range.
template <class Product>
inline void multiply_chunk(const MatmulArgs& a, const MatmulChunk<Product>& chunk) {
  const int64_t n_in = a.shape.n_in;
  const size_t stride = chunk.panel_stride;
  for (int64_t k = 0; chunk.is_small() && !is_prepared(a, chunk.n_rows) && k < n_in; k += Product::kDepth) {
    prepare_rows<Product>(a, chunk, k, chunk.tiles + static_cast<size_t>(k / Product::kDepth) * chunk.tiles_bytes());
  }
  const int64_t largest_group = chunk.largest_group();
  for (int64_t p = a.panel_begin; p < a.panel_end;) {
    const int64_t n_group = a.panel_end - p < largest_group ? a.panel_end - p : largest_group;
    const auto* group = reinterpret_cast<const uint8_t*>(a.weights) + static_cast<size_t>(p) * stride;
    const uint8_t* src = group;
    std::memset(chunk.acc, 0, static_cast<size_t>(largest_group * chunk.acc_stride()) * sizeof(float));
    const std::byte* tiles = chunk.tiles;
    for (int64_t k = 0; k < n_in; k += Product::kDepth) {
      const int n_k = depth_at<Product>(a, k);
      if (!chunk.is_small()) prepare_rows<Product>(a, chunk, k, chunk.tiles);
      const bool is_last = k + n_k == n_in;
      const uint8_t* after = src + Product::bytes_of_unit(n_k);
      multiply_unit<Product>(chunk, src, is_last ? group + static_cast<size_t>(n_group) * stride : after, n_k, n_group,
                             tiles);
      src = after;
      if (chunk.is_small()) tiles += chunk.tiles_bytes();
    }
    for (int64_t i = 0; i < n_group; ++i) {
      store_sums(a, p + i, chunk.first_row, chunk.n_rows, chunk.acc + i * chunk.acc_stride());
    }
    p += n_group;
  }
}

template <class Product>
inline void multiply(const MatmulArgs& a) {
  for (int32_t row = 0; row < a.n_rows; row += kMatmulRows) {
    const int32_t n_rows = a.n_rows - row < kMatmulRows ? a.n_rows - row : kMatmulRows;
    multiply_chunk<Product>(a, MatmulChunk<Product>(a, row, n_rows));
  }
}

template <KernelFamily family, class Block>
inline bool multiply_if(const MatmulArgs& a) {
  if constexpr (Block::kFamily == family) {
    if (a.shape.dtype != Block::kType) return false;
    if constexpr (family == KernelFamily::kFloats) {
      multiply<FloatProduct<Block::kType>>(a);
    } else if constexpr (family == KernelFamily::kGrids) {
      multiply<GridProduct<Block::kType>>(a);
    } else {
      multiply<BlockProduct<Block::kType>>(a);
    }
    return true;
  }
  return false;
}

// REQUIRES: weights of this family.
template <KernelFamily family, class... Blocks>
inline void multiply_family(const MatmulArgs& a, BlockList<Blocks...>) {
  static_cast<void>((multiply_if<family, Blocks>(a) || ...));
}
