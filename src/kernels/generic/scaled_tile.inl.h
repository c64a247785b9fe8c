// What a tile of a product with rows of int8 that have one scale computes (matmul_scaled_rows.inl.h).

// Some rows and the panels of a group, from one k on.
struct ScaledTile {
  const uint8_t* weights;  // of the first panel
  size_t apart;            // from panel to panel
  const int8_t* x;         // of the first row
  size_t stride;           // from row to row
  int32_t* sums;           // [row][16] of the first panel
  int64_t sums_apart;      // from panel to panel
  int64_t n_k;             // a multiple of 4
  const uint8_t* ahead;    // what is prefetched: n_ahead panels of it, apart
  int n_ahead;
};

CANDOR_INLINE U8 load_scaled_codes(const uint8_t* at) {
  return kDotIsSigned ? flip_sign_u(load_u(at)) : load_u(at);
}

// Prefetches for the next 4 k.
CANDOR_INLINE void prefetch_scaled(const ScaledTile& t, int64_t k) {
  for (int i = 0; i < t.n_ahead; ++i) prefetch_far(t.ahead + static_cast<size_t>(i) * t.apart + 16 * k);
}
