// The tile of a product with rows of int8 that have one scale (matmul_scaled_rows.inl.h), by dot products of 4 k.

constexpr int kScaledPanels = kDotPanels > 1 ? 4 : 1;  // 24 sums + 4 of weights + an activation, of 32 registers
constexpr int kScaledTile = kTileRows;

// sums[p][r] += the products of one group of 4 k. x: of each row, at that k.
template <int n_panels, int n>
CANDOR_INLINE void add_scaled_group(const uint8_t* weights, size_t apart, const int8_t* const* x, int64_t k,
                                    I32 (*sums)[n]) {
  U8 w[n_panels];
#pragma GCC unroll 4
  for (int p = 0; p < n_panels; ++p) w[p] = load_scaled_codes(weights + static_cast<size_t>(p) * apart);
#pragma GCC unroll 16
  for (int r = 0; r < n; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < n_panels; ++p) sums[p][r] = dot4<true, false, n_panels>(sums[p][r], w[p], x[r] + k);
  }
}

template <int n_panels, int n>
inline void multiply_scaled_tile(const ScaledTile& t) {
  I32 sums[n_panels][n];
  const int8_t* x[n];
  for (int r = 0; r < n; ++r) x[r] = t.x + static_cast<size_t>(r) * t.stride;
#pragma GCC unroll 4
  for (int p = 0; p < n_panels; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) sums[p][r] = load_i(t.sums + p * t.sums_apart + 16 * r);
  }
  for (int64_t k = 0; k < t.n_k; k += 4) {
    prefetch_scaled(t, k);
    add_scaled_group<n_panels, n>(t.weights + 16 * k, t.apart, x, k, sums);
  }
#pragma GCC unroll 4
  for (int p = 0; p < n_panels; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) store_i(t.sums + p * t.sums_apart + 16 * r, sums[p][r]);
  }
}

// n: at least the tile's rows.
template <int n_panels, int n>
inline void multiply_scaled_tile_of(const ScaledTile& t, int32_t n_rows) {
  if constexpr (n > 1) {
    if (n_rows < n) return multiply_scaled_tile_of<n_panels, n - 1>(t, n_rows);
  }
  multiply_scaled_tile<n_panels, n>(t);
}
