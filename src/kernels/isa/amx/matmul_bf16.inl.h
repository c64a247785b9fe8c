// Products with bf16 on tile registers: a packed panel is the right operand as it lies.

struct HalfScratch {
  alignas(64) float acc[kGroupPanels][kTileChunkRows][16];
};
static_assert(sizeof(HalfScratch) <= kScratchTileBytes);

// 32 k of row tile r with the weights in 6: its sums in r.
template <class Tiles, int r>
inline void half_tile(Tiles& tiles, const std::byte* a, size_t stride) {
  constexpr int kA = 4 + r % 2;
  tiles.template load<kA>(a + static_cast<size_t>(r * kTileRows16) * stride, stride);
  tiles.template dot_bf16<r, kA, 6>();
}
// The same of n row tiles: 1, 2 or 4.
template <class Tiles, int n>
inline void half_step(Tiles& tiles, const std::byte* a, size_t stride) {
  half_tile<Tiles, 0>(tiles, a, stride);
  if constexpr (n > 1) half_tile<Tiles, 1>(tiles, a, stride);
  if constexpr (n > 2) {
    half_tile<Tiles, 2>(tiles, a, stride);
    half_tile<Tiles, 3>(tiles, a, stride);
  }
}
// sums: n tiles of 16 rows of 16, one after another.
template <class Tiles, int n>
inline void load_sums(Tiles& tiles, const float* sums) {
  load_tiles<Tiles, n>(tiles, sums, kTileRows16 * 16, 64);
}
template <class Tiles, int n>
inline void store_sums(Tiles& tiles, float* sums) {
  store_tiles<Tiles, n>(tiles, sums, kTileRows16 * 16, 64);
}

// REQUIRES: n_in is a multiple of 32.
template <class Tiles>
class HalfWalk {
 public:
  HalfWalk(Tiles& tiles, const MatmulArgs& m)
      : tiles_(tiles),
        m_(m),
        stride_(encoded_row_bytes(Encoding::kBf16, m.shape.n_in)),
        s_(*reinterpret_cast<HalfScratch*>(m.scratch)),
        last_(m.scratch + sizeof(HalfScratch)) {}

  static TileConfig config(int32_t /*n_rows*/) { return kDeepTiles; }

  // Rows [first_row, first_row + n_rows), at most kTileChunkRows, of all panels.
  void chunk(int32_t first_row, int32_t n_rows) {
    halves_ = m_.activations + static_cast<size_t>(first_row) * stride_ + encoded_halves_offset(m_.shape.n_in);
    first_row_ = first_row;
    n_rows_ = n_rows;
    if (!is_prepared(m_, n_rows)) copy_last();
    for (int64_t p = m_.panel_begin; p < m_.panel_end; p += kGroupPanels) {
      group(p, m_.panel_end - p < kGroupPanels ? m_.panel_end - p : kGroupPanels);
    }
  }

 private:
  struct Unit {
    const uint8_t* halves;  // [n_k / 2][16] pairs
    int64_t k;
    int n_k;  // a multiple of 32
  };

  static constexpr size_t kLastStride = sizeof(uint16_t) * kUnit;

  std::byte* last(int64_t k) const { return last_ + k / kUnit * kTileRows16 * static_cast<int64_t>(kLastStride); }
  int columns_of(int64_t k) const { return static_cast<int>(m_.shape.n_in - k < kUnit ? m_.shape.n_in - k : kUnit); }

  void copy_last() {
    const int32_t n_whole = n_rows_ / kTileRows16 * kTileRows16;
    if (n_whole == n_rows_) return;
    for (int64_t k = 0; k < m_.shape.n_in; k += kUnit) {
      std::memset(last(k), 0, kTileRows16 * kLastStride);
      for (int32_t r = n_whole; r < n_rows_; ++r) {
        std::memcpy(last(k) + static_cast<size_t>(r - n_whole) * kLastStride,
                    halves_ + static_cast<size_t>(r) * stride_ + 2 * k, static_cast<size_t>(2 * columns_of(k)));
      }
    }
  }

  void group(int64_t panel, int64_t n_panels) {
    const size_t stride = panel_bytes(m_.shape);
    const auto* src = reinterpret_cast<const uint8_t*>(m_.weights) + static_cast<size_t>(panel) * stride;
    const int32_t n_padded = (n_rows_ + kTileRows16 - 1) / kTileRows16 * kTileRows16;
    for (int64_t i = 0; i < n_panels; ++i) {
      std::memset(s_.acc[i], 0, static_cast<size_t>(n_padded) * sizeof s_.acc[0][0]);
    }
    for (int64_t k = 0; k < m_.shape.n_in; k += kUnit, src += 32 * kUnit) {
      for (int64_t i = 0; i < n_panels; ++i) {
        blocks<4>({src + static_cast<size_t>(i) * stride, k, columns_of(k)}, 0, s_.acc[i][0]);
      }
    }
    store_rows(m_, panel, n_panels, first_row_, n_rows_, s_.acc[0], kTileChunkRows);
  }

  // Rows from `first` on, n tiles of 16 at a time, then fewer. acc: of row 0.
  template <int n>
  void blocks(Unit unit, int32_t first, float* acc) {
    constexpr int32_t kRows = n * kTileRows16;
    const std::byte* rows = halves_ + 2 * unit.k;
    for (; first + kRows <= n_rows_; first += kRows) {
      block<n>(unit, {rows + static_cast<size_t>(first) * stride_, stride_}, first == 0, acc + 16 * first);
    }
    if constexpr (n > 1) {
      blocks<n / 2>(unit, first, acc);
    } else if (first < n_rows_) {
      block<1>(unit, {last(unit.k), kLastStride}, first == 0, acc + 16 * first);
    }
  }

  // The first block prefetches the panel's next unit.
  template <int n>
  void block(Unit unit, TileOperand a, bool is_first, float* acc) {
    load_sums<Tiles, n>(tiles_, acc);
    for (int k = 0; k < unit.n_k; k += 32) {
      const uint8_t* at = unit.halves + 32 * k;
      tiles_.template load<6>(at, 64);
      half_step<Tiles, n>(tiles_, a.data + 2 * k, a.stride);
      if (is_first) {
        for (size_t line = 0; line < 1024; line += kLineBytes) prefetch(at + 32 * kUnit + line);
      }
    }
    store_sums<Tiles, n>(tiles_, acc);
  }

  Tiles& tiles_;
  const MatmulArgs& m_;
  size_t stride_;
  HalfScratch& s_;
  std::byte* last_;  // [unit][16][kUnit] bf16 of the rows past the last whole tile, then zeros; after the scratch
  const std::byte* halves_ = nullptr;  // of the chunk's first row
  int32_t first_row_ = 0;
  int32_t n_rows_ = 0;
};
