// Products with FP8 and FP4 weights on tile registers: a block of 128 k of a panel becomes four right operands of bf16,
// once for all rows of a chunk. Sums over a block are those of bf16 products from zero; lanes add them under its scale.

struct FloatBlockScratch {
  alignas(64) float acc[kGroupPanels][kTileChunkRows][16];
  alignas(64) int32_t pairs[kFloatBlockDepth / 2][16];  // of bf16: four tiles
  alignas(64) float sums[4][kTileRows16][16];
};
static_assert(sizeof(FloatBlockScratch) <= kScratchTileBytes);
static_assert(kTileRows16 * kUnit * sizeof(uint16_t) <= kScratchTileUnitBytes);

template <class Tiles, class Codes>
class FloatBlockWalk {
 public:
  FloatBlockWalk(Tiles& tiles, const MatmulArgs& m)
      : tiles_(tiles),
        m_(m),
        stride_(encoded_row_bytes(Encoding::kBf16, m.shape.n_in)),
        s_(*reinterpret_cast<FloatBlockScratch*>(m.scratch)),
        last_(m.scratch + sizeof(FloatBlockScratch)) {}

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
  static constexpr size_t kLastStride = sizeof(uint16_t) * kFloatBlockDepth;

  std::byte* last(int64_t k) const {
    return last_ + k / kFloatBlockDepth * kTileRows16 * static_cast<int64_t>(kLastStride);
  }

  void copy_last() {
    const int32_t n_whole = n_rows_ / kTileRows16 * kTileRows16;
    if (n_whole == n_rows_) return;
    for (int64_t k = 0; k < m_.shape.n_in; k += kFloatBlockDepth) {
      std::memset(last(k), 0, kTileRows16 * kLastStride);
      for (int32_t r = n_whole; r < n_rows_; ++r) {
        std::memcpy(last(k) + static_cast<size_t>(r - n_whole) * kLastStride,
                    halves_ + static_cast<size_t>(r) * stride_ + 2 * k, kLastStride);
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
    for (int64_t k = 0; k < m_.shape.n_in; k += kFloatBlockDepth, src += Codes::kFormat.unit_bytes()) {
      for (int64_t i = 0; i < n_panels; ++i) {
        const uint8_t* unit = src + static_cast<size_t>(i) * stride;
        widen(unit);
        blocks<4>(load(reinterpret_cast<const float*>(unit)), k, 0, s_.acc[i][0]);
      }
    }
    store_rows(m_, panel, n_panels, first_row_, n_rows_, s_.acc[0], kTileChunkRows);
  }

  // What is prefetched, the panel's next unit, may lie past the matrix.
  void widen(const uint8_t* unit) {
    for (int k = 0; k < kFloatBlockDepth; k += kCodeGroup) {
      const Codes codes = Codes::group(unit, k);
      for (int j = 0; j < kCodeGroup; j += 2) {
        if (j % 4 == 0) prefetch(codes.at + kPanelRows * j + Codes::kFormat.unit_bytes());
        const I32 even = shr_i<16>(f32_to_bits(codes.even(j)));
        store_i(s_.pairs[(k + j) / 2], or_i(f32_to_bits(codes.odd(j)), even));
      }
    }
  }

  // Rows from `first` on, n tiles of 16 at a time, then fewer. acc: of row 0.
  template <int n>
  void blocks(F32 d, int64_t k, int32_t first, float* acc) {
    constexpr int32_t kRows = n * kTileRows16;
    for (; first + kRows <= n_rows_; first += kRows) {
      block<n>(d, {halves_ + static_cast<size_t>(first) * stride_ + 2 * k, stride_}, acc + 16 * first);
    }
    if constexpr (n > 1) {
      blocks<n / 2>(d, k, first, acc);
    } else if (first < n_rows_) {
      block<1>(d, {last(k), kLastStride}, acc + 16 * first);
    }
  }

  template <int n>
  void block(F32 d, TileOperand a, float* acc) {
    zero_sums<Tiles, n>(tiles_);
    for (int k = 0; k < kFloatBlockDepth; k += 32) {
      tiles_.template load<6>(s_.pairs[k / 2], 64);
      half_step<Tiles, n>(tiles_, a.data + 2 * k, a.stride);
    }
    store_sums<Tiles, n>(tiles_, s_.sums[0][0]);
    for (int r = 0; r < n * kTileRows16; ++r) {
      float* total = acc + 16 * r;
      store(total, fma(d, load(s_.sums[0][0] + 16 * r), load(total)));
    }
  }

  Tiles& tiles_;
  const MatmulArgs& m_;
  size_t stride_;
  FloatBlockScratch& s_;
  std::byte* last_;  // [block][16][128] bf16 of the rows past the last whole tile, then zeros; after the scratch
  const std::byte* halves_ = nullptr;  // of the chunk's first row
  int32_t first_row_ = 0;
  int32_t n_rows_ = 0;
};
