// The tile of a product with rows of int8 that have one scale (generic/scaled_panels.inl.h), by the matrix products of
// Armv8.6-A. An instruction takes two rows x 8 k and two outputs x 8 k, and adds to the four sums of both; that is twice
// what a dot product instruction does. A tile is half as many pairs of rows, so that 24 registers hold its sums:
//
//   sums[pair][q], q of 8 pairs of outputs:  | row 0, output 2q | row 0, output 2q + 1 | row 1, 2q | row 1, 2q + 1 |

constexpr int kScaledPanels = 1;
constexpr int kScaledTile = 6;  // 24 sums, 3 pairs of rows, 2 of weights and what they are made of

CANDOR_INLINE int8x16_t load_row_pair(const int8_t* first, const int8_t* second) {
  return vcombine_s8(vld1_s8(first), vld1_s8(second));
}

// Of two groups of 4 k of four outputs: the pair of outputs 0 and 1, or 2 and 3, with 8 k each.
CANDOR_INLINE int8x16_t first_pair(uint8x16_t k0, uint8x16_t k4) {
  return vreinterpretq_s8_s32(vzip1q_s32(vreinterpretq_s32_u8(k0), vreinterpretq_s32_u8(k4)));
}
CANDOR_INLINE int8x16_t second_pair(uint8x16_t k0, uint8x16_t k4) {
  return vreinterpretq_s8_s32(vzip2q_s32(vreinterpretq_s32_u8(k0), vreinterpretq_s32_u8(k4)));
}

// n: rows. An odd one is its own partner, whose sums are not stored.
template <int n>
struct PairTile {
  static constexpr int kPairs = (n + 1) / 2;
  int32x4_t sums[kPairs][8];

  static constexpr int second_of(int pair) { return 2 * pair + 1 < n ? 2 * pair + 1 : 2 * pair; }

  CANDOR_INLINE void load(const int32_t* from) {
#pragma GCC unroll 3
    for (int pair = 0; pair < kPairs; ++pair) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int32x4_t a = vld1q_s32(from + 32 * pair + 4 * i);
        const int32x4_t b = vld1q_s32(from + 16 * second_of(pair) + 4 * i);
        sums[pair][2 * i] = vcombine_s32(vget_low_s32(a), vget_low_s32(b));
        sums[pair][2 * i + 1] = vcombine_s32(vget_high_s32(a), vget_high_s32(b));
      }
    }
  }

  CANDOR_INLINE void store(int32_t* to) const {
#pragma GCC unroll 3
    for (int pair = 0; pair < kPairs; ++pair) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int32x4_t left = sums[pair][2 * i];
        const int32x4_t right = sums[pair][2 * i + 1];
        vst1q_s32(to + 32 * pair + 4 * i, vcombine_s32(vget_low_s32(left), vget_low_s32(right)));
        if (2 * pair + 1 < n)
          vst1q_s32(to + 32 * pair + 16 + 4 * i, vcombine_s32(vget_high_s32(left), vget_high_s32(right)));
      }
    }
  }

  // x: of each row, 8 k.
  CANDOR_INLINE void add(const uint8_t* weights, const int8_t* x, size_t stride) {
    int8x16_t pairs[kPairs];
#pragma GCC unroll 3
    for (int pair = 0; pair < kPairs; ++pair) {
      pairs[pair] = load_row_pair(x + static_cast<size_t>(2 * pair) * stride,
                                  x + static_cast<size_t>(second_of(pair)) * stride);
    }
    const U8 k0 = load_scaled_codes(weights);
    const U8 k4 = load_scaled_codes(weights + 64);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int8x16_t left = first_pair(k0.v[i], k4.v[i]);
      const int8x16_t right = second_pair(k0.v[i], k4.v[i]);
#pragma GCC unroll 3
      for (int pair = 0; pair < kPairs; ++pair) {
        sums[pair][2 * i] = vmmlaq_s32(sums[pair][2 * i], pairs[pair], left);
        sums[pair][2 * i + 1] = vmmlaq_s32(sums[pair][2 * i + 1], pairs[pair], right);
      }
    }
  }
};

static_assert(kScaledRowsStep % 8 == 0, "a tile takes 8 k at once");

template <int n>
CANDOR_NO_INLINE void multiply_scaled_pairs(const ScaledTile& t) {
  PairTile<n> tile;
  tile.load(t.sums);
  for (int64_t k = 0; k < t.n_k; k += 8) {
    prefetch_scaled(t, k);
    prefetch_scaled(t, k + 4);
    tile.add(t.weights + 16 * k, t.x + k, t.stride);
  }
  tile.store(t.sums);
}

// n: at least the tile's rows.
template <int n_panels, int n>
inline void multiply_scaled_tile_of(const ScaledTile& t, int32_t n_rows) {
  if constexpr (n > 1) {
    if (n_rows < n) return multiply_scaled_tile_of<n_panels, n - 1>(t, n_rows);
  }
  multiply_scaled_pairs<n>(t);
}
