// Products with rows of int8 that have one scale (W8A8). All of k is one integer sum, so that a tile's sums only wait
// in memory for the next k and are converted once. Order: docs/numerics.md, "Products".
//
//                 x, as encoded: a row's codes lie together
//   kScaledDepth  +-----+          a tile: kScaledTile rows x 16 outputs of kScaledPanels panels, sums in registers;
//   of k:         | x 0 |          for each group of 4 k it loads 64 bytes of each panel once and 4 of each row
//                 | x 1 |   x      +--------+--------+--------+--------+
//                 | ... |          | panel  | panel  | panel  | panel  |   16 KB of each, which stay in a cache while
//                 +-----+          +--------+--------+--------+--------+   all tiles of the chunk pass
//
// The longer a tile's run over k, the less do its beginning and its end take: of four panels 64 KB come from the
// second-level cache, at 256 bytes for 24 products.

constexpr int64_t kScaledDepth = 1024;
constexpr size_t kScaledStreamAhead = 2304;  // bytes that one row prefetches ahead of itself (matmul.inl.h)

// Rows that pass over the panels together.
struct ScaledChunk {
  const std::byte* x;  // of the first row
  size_t stride;
  size_t sums_offset;    // in an encoded row
  size_t scales_offset;
  int32_t first_row;
  int32_t n_rows;
  int32_t n_tiles;
  int32_t* sums;  // [panel of the group][row][16]

  ScaledChunk(const MatmulArgs& a, int32_t first, int32_t n)
      : stride(encoded_row_bytes(Encoding::kQ8Row, a.shape.n_in)),
        sums_offset(encoded_sums_offset(Encoding::kQ8Row, a.shape.n_in)),
        scales_offset(encoded_scales_offset(Encoding::kQ8Row, a.shape.n_in)),
        first_row(first),
        n_rows(n),
        n_tiles((n + kScaledTile - 1) / kScaledTile),
        sums(reinterpret_cast<int32_t*>(a.scratch)) {
    static_assert(size_t{kScaledPanels} * kMatmulRows * 16 * sizeof(int32_t) <= kScratchSumBytes);
    x = a.activations + static_cast<size_t>(first) * stride;
  }
  int32_t first_row_of(int32_t tile) const { return static_cast<int32_t>(int64_t{n_rows} * tile / n_tiles); }
  bool is_stream() const { return n_rows == 1; }  // takes one panel after another (matmul.inl.h)
  int64_t sums_apart() const { return int64_t{16} * n_rows; }
  const std::byte* row(int32_t r) const { return x + static_cast<size_t>(r) * stride; }
};

// Unsigned codes are 128 too large.
template <int n_panels>
inline void start_scaled_sums(const ScaledChunk& chunk) {
  for (int32_t r = 0; r < chunk.n_rows; ++r) {
    int32_t sum;
    std::memcpy(&sum, chunk.row(r) + chunk.sums_offset, sizeof sum);
    const I32 start = splat_i(kDotIsSigned ? 0 : -128 * sum);
    for (int p = 0; p < n_panels; ++p) store_i(chunk.sums + p * chunk.sums_apart() + 16 * r, start);
  }
}

// d: the scales of a panel's outputs.
CANDOR_INLINE F32 finish_scaled_sum(I32 sum, F32 d, F32 dx) {
  return mul(dx, mul(d, to_f32(sum)));
}

template <int n_panels>
inline void store_scaled_sums(const MatmulArgs& a, const ScaledChunk& chunk, int64_t panel) {
  const std::byte* weights = a.weights + static_cast<size_t>(panel) * panel_bytes(a.shape);
  F32 d[n_panels];
  for (int p = 0; p < n_panels; ++p) {
    d[p] = load(reinterpret_cast<const float*>(weights + static_cast<size_t>(p) * panel_bytes(a.shape)));
  }
  float* dst = a.dst + chunk.first_row * a.dst_stride + panel * kPanelRows;
  const int64_t n_left = a.shape.n_out - panel * kPanelRows;
  for (int32_t r = 0; r < chunk.n_rows; ++r, dst += a.dst_stride) {
    float scale;
    std::memcpy(&scale, chunk.row(r) + chunk.scales_offset, sizeof scale);
    const F32 dx = splat(scale);
    for (int p = 0; p < n_panels; ++p) {
      const I32 sum = load_i(chunk.sums + p * chunk.sums_apart() + 16 * r);
      store_part(dst + kPanelRows * p, n_left - kPanelRows * p, finish_scaled_sum(sum, d[p], dx));
    }
  }
}

// Panels [panel, panel + n_panels). What is prefetched, the next k or the panels that follow, may lie past the matrix.
template <int n_panels>
inline void multiply_scaled_panels(const MatmulArgs& a, const ScaledChunk& chunk, int64_t panel) {
  const size_t apart = panel_bytes(a.shape);
  const auto* group = reinterpret_cast<const uint8_t*>(a.weights) + static_cast<size_t>(panel) * apart;
  const int64_t n_in = scaled_rows_depth(a.shape.n_in);
  const int ahead_of_tile = (n_panels + chunk.n_tiles - 1) / chunk.n_tiles;
  start_scaled_sums<n_panels>(chunk);
  for (int64_t k = 0; k < n_in; k += kScaledDepth) {
    const int64_t n_k = n_in - k < kScaledDepth ? n_in - k : kScaledDepth;
    const uint8_t* weights = group + kScaledRowsHeader + 16 * k;
    const uint8_t* next = chunk.is_stream()  ? weights + kScaledStreamAhead
                          : k + n_k < n_in ? weights + 16 * n_k
                                           : group + n_panels * apart;
    int n_ahead = n_panels;  // not yet prefetched
    for (int32_t tile = 0; tile < chunk.n_tiles; ++tile) {
      const int32_t first = chunk.first_row_of(tile);
      const int now = ahead_of_tile < n_ahead ? ahead_of_tile : n_ahead;
      const ScaledTile t{weights, apart, reinterpret_cast<const int8_t*>(chunk.row(first)) + k, chunk.stride,
                         chunk.sums + 16 * first, chunk.sums_apart(), n_k,
                         next + static_cast<size_t>(n_panels - n_ahead) * apart, now};
      multiply_scaled_tile_of<n_panels, kScaledTile>(t, chunk.first_row_of(tile + 1) - first);
      n_ahead -= now;
    }
  }
  store_scaled_sums<n_panels>(a, chunk, panel);
}

inline void multiply_scaled(const MatmulArgs& a) {
  for (int32_t row = 0; row < a.n_rows; row += kMatmulRows) {
    const ScaledChunk chunk(a, row, a.n_rows - row < kMatmulRows ? a.n_rows - row : kMatmulRows);
    int64_t panel = a.panel_begin;
    for (; !chunk.is_stream() && panel + kScaledPanels <= a.panel_end; panel += kScaledPanels) {
      multiply_scaled_panels<kScaledPanels>(a, chunk, panel);
    }
    for (; panel < a.panel_end; ++panel) multiply_scaled_panels<1>(a, chunk, panel);
  }
}
