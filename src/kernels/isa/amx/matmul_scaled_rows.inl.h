// Products with rows of int8 that have one scale (W8A8) on tile registers: a packed panel is the right operand as it
// lies, and encoded rows are the left one. Sums of all k stay integers; a tile of them waits in memory once every
// kScaledTileDepth of k, of which two panels stay in the first-level cache.
//
//   32 rows x 2 panels                       16 rows x 4 panels (what is left)
//   b: tile 6, tile 7                        b: tiles 6 and 7 in turn
//   a: tile 4  -> sums 0, 1                  a: tile 4  -> sums 0, 1, 2, 3
//      tile 5  -> sums 2, 3

constexpr int64_t kScaledTileDepth = 1024;
constexpr int64_t kScaledGroup = 4;  // panels that are walked together

struct ScaledScratch {
  alignas(64) int32_t sums[kScaledGroup][kTileChunkRows][16];
};
static_assert(sizeof(ScaledScratch) + kTileRows16 * (kLineBytes + kUnit) <= kScratchTileBytes);
static_assert(kTileRows16 * kUnit <= kScratchTileUnitBytes);

template <class Tiles>
class ScaledWalk {
 public:
  ScaledWalk(Tiles& tiles, const MatmulArgs& m)
      : tiles_(tiles),
        m_(m),
        stride_(encoded_row_bytes(Encoding::kQ8Row, m.shape.n_in)),
        apart_(panel_bytes(m.shape)),
        depth_(scaled_rows_depth(m.shape.n_in)),
        s_(*reinterpret_cast<ScaledScratch*>(m.scratch)),
        last_(m.scratch + sizeof(ScaledScratch)) {}

  static TileConfig config(int32_t /*n_rows*/) { return kDeepTiles; }

  // Rows [first_row, first_row + n_rows), at most kTileChunkRows, of all panels.
  void chunk(int32_t first_row, int32_t n_rows) {
    rows_ = m_.activations + static_cast<size_t>(first_row) * stride_;
    first_row_ = first_row;
    n_rows_ = n_rows;
    if (!is_prepared(m_, n_rows)) copy_last();
    for (int64_t p = m_.panel_begin; p < m_.panel_end; p += kScaledGroup) {
      group(p, m_.panel_end - p < kScaledGroup ? m_.panel_end - p : kScaledGroup);
    }
  }

 private:
  // Some k of a panel, and whether they are its first ones.
  struct Part {
    const uint8_t* weights;
    int64_t k;
    int64_t n_k;
  };

  // The rows past the last whole tile, then zeros.
  void copy_last() {
    const int32_t n_whole = n_rows_ / kTileRows16 * kTileRows16;
    if (n_whole == n_rows_) return;
    std::memset(last_, 0, kTileRows16 * last_stride());
    for (int32_t r = n_whole; r < n_rows_; ++r) {
      std::memcpy(last_ + static_cast<size_t>(r - n_whole) * last_stride(), rows_ + static_cast<size_t>(r) * stride_,
                  static_cast<size_t>(depth_));
    }
  }
  size_t last_stride() const { return static_cast<size_t>(depth_) + kLineBytes; }

  void group(int64_t panel, int64_t n_panels) {
    const auto* src = reinterpret_cast<const uint8_t*>(m_.weights) + static_cast<size_t>(panel) * apart_;
    for (int64_t k = 0; k < depth_; k += kScaledTileDepth) {
      const int64_t n_k = depth_ - k < kScaledTileDepth ? depth_ - k : kScaledTileDepth;
      const Part part{src + kScaledRowsHeader + 16 * k, k, n_k};
      int32_t row = 0;
      for (int64_t p = 0; p < n_panels; p += 2) row = pairs(part, p, n_panels - p > 1);
      for (; row < n_rows_; row += kTileRows16) single(part, row, n_panels);
    }
    store(panel, n_panels);
  }

  // Rows that are left of 32 at a time begin at what it returns.
  int32_t pairs(Part part, int64_t p, bool are_two) {
    part.weights += static_cast<size_t>(p) * apart_;
    int32_t row = 0;
    for (; row + 2 * kTileRows16 <= n_rows_; row += 2 * kTileRows16) {
      if (are_two) {
        block<2>(part, row, s_.sums[p][row], s_.sums[p + 1][row]);
      } else {
        block<1>(part, row, s_.sums[p][row], nullptr);
      }
    }
    return row;
  }

  template <int t>
  void start(int64_t k, const int32_t* sums) {
    if (k == 0) {
      tiles_.template zero<t>();
    } else {
      tiles_.template load<t>(sums, 64);
    }
  }

  // 32 rows of one panel or two. first, second: their sums.
  template <int n_panels>
  void block(Part part, int32_t row, int32_t* first, int32_t* second) {
    constexpr int kBelow = kTileRows16 * 16;  // the sums of the second 16 rows
    start<0>(part.k, first);
    start<2>(part.k, first + kBelow);
    if constexpr (n_panels > 1) {
      start<1>(part.k, second);
      start<3>(part.k, second + kBelow);
    }
    const std::byte* a = rows_ + static_cast<size_t>(row) * stride_ + part.k;
    const uint8_t* b = part.weights;
    for (int64_t k = 0; k < part.n_k; k += 64, a += 64, b += 1024) {
      tiles_.template load<6>(b, 64);
      tiles_.template load<4>(a, stride_);
      tiles_.template dot_unsigned<0, 4, 6>();
      tiles_.template load<5>(a + kTileRows16 * stride_, stride_);
      tiles_.template dot_unsigned<2, 5, 6>();
      if constexpr (n_panels > 1) {
        tiles_.template load<7>(b + apart_, 64);
        tiles_.template dot_unsigned<1, 4, 7>();
        tiles_.template dot_unsigned<3, 5, 7>();
      }
    }
    tiles_.template store<0>(first, 64);
    tiles_.template store<2>(first + kBelow, 64);
    if constexpr (n_panels > 1) {
      tiles_.template store<1>(second, 64);
      tiles_.template store<3>(second + kBelow, 64);
    }
  }

  // 16 rows, or fewer at the end, of up to four panels.
  void single(Part part, int32_t row, int64_t n_panels) {
    const bool is_last = row + kTileRows16 > n_rows_;
    const TileOperand a = is_last ? TileOperand{last_ + part.k, last_stride()}
                                  : TileOperand{rows_ + static_cast<size_t>(row) * stride_ + part.k, stride_};
    start<0>(part.k, s_.sums[0][row]);
    if (n_panels > 1) start<1>(part.k, s_.sums[1][row]);
    if (n_panels > 2) start<2>(part.k, s_.sums[2][row]);
    if (n_panels > 3) start<3>(part.k, s_.sums[3][row]);
    for (int64_t k = 0; k < part.n_k; k += 64) {
      tiles_.template load<4>(a.data + k, a.stride);
      add_panel<0, 6>(part, k);
      if (n_panels > 1) add_panel<1, 7>(part, k);
      if (n_panels > 2) add_panel<2, 6>(part, k);
      if (n_panels > 3) add_panel<3, 7>(part, k);
    }
    tiles_.template store<0>(s_.sums[0][row], 64);
    if (n_panels > 1) tiles_.template store<1>(s_.sums[1][row], 64);
    if (n_panels > 2) tiles_.template store<2>(s_.sums[2][row], 64);
    if (n_panels > 3) tiles_.template store<3>(s_.sums[3][row], 64);
  }
  template <int p, int b>
  void add_panel(const Part& part, int64_t k) {
    tiles_.template load<b>(part.weights + p * apart_ + 16 * k, 64);
    tiles_.template dot_unsigned<p, 4, b>();
  }

  // Row by row; codes were 128 too large.
  void store(int64_t panel, int64_t n_panels) {
    const std::byte* weights = m_.weights + static_cast<size_t>(panel) * apart_;
    float* dst = m_.dst + first_row_ * m_.dst_stride + panel * kPanelRows;
    const int64_t n_left = m_.shape.n_out - panel * kPanelRows;
    for (int32_t r = 0; r < n_rows_; ++r, dst += m_.dst_stride) {
      const std::byte* ends = rows_ + static_cast<size_t>(r) * stride_;
      int32_t sum;
      float scale;
      std::memcpy(&sum, ends + encoded_sums_offset(Encoding::kQ8Row, m_.shape.n_in), sizeof sum);
      std::memcpy(&scale, ends + encoded_scales_offset(Encoding::kQ8Row, m_.shape.n_in), sizeof scale);
      for (int64_t p = 0; p < n_panels; ++p) {
        const F32 d = load(reinterpret_cast<const float*>(weights + static_cast<size_t>(p) * apart_));
        const I32 total = add_i(load_i(s_.sums[p][r]), splat_i(-128 * sum));
        store_part(dst + p * kPanelRows, n_left - p * kPanelRows, mul(splat(scale), mul(d, to_f32(total))));
      }
    }
  }

  Tiles& tiles_;
  const MatmulArgs& m_;
  size_t stride_;
  size_t apart_;
  int64_t depth_;
  ScaledScratch& s_;
  std::byte* last_;  // [16] rows past the last whole tile, last_stride() apart; after the scratch
  const std::byte* rows_ = nullptr;  // the chunk's first
  int32_t first_row_ = 0;
  int32_t n_rows_ = 0;
};
