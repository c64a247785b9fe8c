// Products with bf16 on tile registers: a packed panel is the right operand as it lies.

struct HalfScratch {
  alignas(64) std::byte last[kTileRows16][2 * kUnit];  // of the rows past the last whole tile, then zeros
  alignas(64) float acc[kGroupPanels][kTileChunkRows][16];
};
static_assert(sizeof(HalfScratch) <= kScratchTileBytes);

template <class Tiles>
class HalfWalk {
 public:
  HalfWalk(Tiles& tiles, const MatmulArgs& m)
      : tiles_(tiles),
        m_(m),
        stride_(encoded_row_bytes(Encoding::kBf16, m.shape.n_in)),
        s_(*reinterpret_cast<HalfScratch*>(m.scratch)) {}

  // Rows [first_row, first_row + n_rows), at most kTileChunkRows, of n_panels panels from `panel`.
  void group(int32_t first_row, int32_t n_rows, int64_t panel, int64_t n_panels) {
    const size_t stride = panel_bytes(m_.shape);
    const auto* src = reinterpret_cast<const uint8_t*>(m_.weights) + static_cast<size_t>(panel) * stride;
    const std::byte* halves =
        m_.activations + static_cast<size_t>(first_row) * stride_ + encoded_halves_offset(m_.shape.n_in);
    const int32_t n_padded = (n_rows + kTileRows16 - 1) / kTileRows16 * kTileRows16;
    n_rows_ = n_rows;
    std::memset(s_.last, 0, sizeof s_.last);
    for (int64_t i = 0; i < n_panels; ++i) {
      std::memset(s_.acc[i], 0, static_cast<size_t>(n_padded) * sizeof s_.acc[0][0]);
    }
    for (int64_t k = 0; k < m_.shape.n_in; k += kUnit, src += 32 * kUnit) {
      const int n_k = static_cast<int>(m_.shape.n_in - k < kUnit ? m_.shape.n_in - k : kUnit);
      const std::byte* rows = halves + 2 * k;
      copy_last(rows, n_k);
      for (int64_t i = 0; i < n_panels; ++i)
        blocks<4>({src + static_cast<size_t>(i) * stride, n_k}, rows, 0, s_.acc[i][0]);
    }
    store_rows(m_, panel, n_panels, first_row, n_rows, s_.acc);
  }

 private:
  struct Unit {
    const uint8_t* halves;  // [n_k / 2][16] pairs
    int n_k;                // a multiple of 32
  };

  void copy_last(const std::byte* rows, int n_k) {
    const int32_t n_whole = n_rows_ / kTileRows16 * kTileRows16;
    for (int32_t r = n_whole; r < n_rows_; ++r) {
      std::memcpy(s_.last[r - n_whole], rows + static_cast<size_t>(r) * stride_, static_cast<size_t>(2 * n_k));
    }
  }

  // Rows from `first` on, n tiles of 16 at a time, then fewer. rows, acc: of row 0.
  template <int n>
  void blocks(Unit unit, const std::byte* rows, int32_t first, float* acc) {
    constexpr int32_t kRows = n * kTileRows16;
    for (; first + kRows <= n_rows_; first += kRows) {
      block<n>(unit, {rows + static_cast<size_t>(first) * stride_, stride_}, first == 0, acc + 16 * first);
    }
    if constexpr (n > 1) {
      blocks<n / 2>(unit, rows, first, acc);
    } else if (first < n_rows_) {
      block<1>(unit, {s_.last[0], sizeof s_.last[0]}, first == 0, acc + 16 * first);
    }
  }

  // The first block asks for the panel's next unit.
  template <int n>
  void block(Unit unit, TileOperand a, bool is_first, float* acc) {
    load_sums<Tiles, n>(tiles_, acc);
    for (int k = 0; k < unit.n_k; k += 32) {
      const uint8_t* at = unit.halves + 32 * k;
      tiles_.template load<6>(at, 64);
      tile_step<Tiles, TileDot::kBf16, n, 1>(tiles_, a.data + 2 * k, a.stride);
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
  int32_t n_rows_ = 0;
};

// REQUIRES: n_in is a multiple of 32: a last tile of fewer k would add other zeros.
template <class Tiles>
inline void multiply_bf16(const MatmulArgs& m) {
  Tiles tiles(kDeepTiles);
  HalfWalk<Tiles> walk(tiles, m);
  for (int32_t row = 0; row < m.n_rows; row += kTileChunkRows) {
    const int32_t n_rows = m.n_rows - row < kTileChunkRows ? m.n_rows - row : kTileChunkRows;
    for (int64_t p = m.panel_begin; p < m.panel_end; p += kGroupPanels) {
      walk.group(row, n_rows, p, m.panel_end - p < kGroupPanels ? m.panel_end - p : kGroupPanels);
    }
  }
}
