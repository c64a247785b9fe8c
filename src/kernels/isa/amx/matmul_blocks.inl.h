// Products with blocks of 32 on tile registers. A block is a product of tiles of half the depth, whose sums become
// floats at once (docs/numerics.md, "Products"), so that lanes have the larger part: for 16 rows and 16 outputs of 256
// k 128 conversions, products of scales and fma each, 192 cycles at two a cycle, beside 8 tile products of 16 cycles.
// So tiles are a step ahead of lanes; a step is 16 rows, two panels and four blocks.
//
//   tiles, step s + 1: eight products              lanes, step s: two passes of eight rows
//
//               b:  tile 6      tile 7                    d of panel 0   d of panel 1, of a block
//                   panel 0     panel 1                        |              |
//   a:            +-----------+-----------+         row 0: dx - x - fma       x - fma    totals: 16 registers for
//   tiles 4 and 5 | sums in   | sums in   |  ----->  ...                                  the four blocks
//   in turn:      | 0, then 2 | 1, then 3 |   1 KB  row 7: dx - x - fma       x - fma
//   16 rows       +-----------+-----------+  in L1
//
// A tile of rows serves two panels, and so does a row's scale, spread once: of sums, scales, totals, d, tiles of rows
// and of weights 128, 64, 32, 16, 64 and 64 loads remain, 184 cycles at two a cycle. With 16 rows of one panel in
// registers it would be 244 cycles. After each two rows of a block (14 vector operations) stands one operation of tiles
// (isa/README.md says why). Sums are stored two products after their own, whose latency is some 50 cycles, and read a
// step later: 8 KB of them, twice.

constexpr int kStepBlocks = 4;
constexpr int kPassRows = 8;
constexpr int kPairPanels = 2;
constexpr int kUnitBlocks = kUnit / 32;
constexpr int kStepPieces = kTileRows16 / kPassRows * kStepBlocks;  // a block of a pass, beside one product

// Of two panels: what lanes multiply sums of products and of x with.
struct BlockFloats {
  alignas(64) float d[kPairPanels][kUnitBlocks][16];
  alignas(64) float m[kPairPanels][kUnitBlocks][16];
};

struct BlockScratch {
  alignas(64) uint8_t codes[kPairPanels][kUnit / 4][64];  // int8
  BlockFloats floats[2];                                  // of the unit in the tiles, and of the one before
  alignas(64) int32_t sums[2][kStepBlocks][kPairPanels][kTileRows16][16];
  alignas(64) float acc[kGroupPanels * kTileChunkRows][16];  // [panel of the group][row_places_]
};
static_assert(sizeof(BlockScratch) <= kScratchTileBytes);

// The codes that unpack.inl.h gives, less their offset.
template <DType dtype>
CANDOR_INLINE U8 signed_codes(U8 codes) {
  constexpr int kOffset = BlockTraits<dtype>::kOffset;
  if constexpr (kOffset == 0) return codes;
  if constexpr (kOffset == 128) return flip_sign_u(codes);
  return add_u<-kOffset>(codes);
}

// What the rows of a chunk bring besides the codes of whole tiles; after the rest of the scratch.
template <bool has_min>
class BlockRows {
 public:
  static constexpr int kPlaces = has_min ? 2 * kUnitBlocks : kUnitBlocks;  // of a row: scales, then sums of x

  BlockRows(std::byte* scratch, int64_t n_in)
      : n_units_((n_in + kUnit - 1) / kUnit),
        floats_(reinterpret_cast<float*>(scratch)),
        last_(scratch + static_cast<size_t>(n_units_) * kUnitFloats * sizeof(float)) {}

  // [kPlaces] of a row at a unit, then the next row's.
  float* floats(int64_t unit, int32_t row) const { return floats_ + unit * kUnitFloats + int64_t{kPlaces} * row; }
  // [16][kUnit] codes of the rows past the last whole tile, then zeros.
  std::byte* last(int64_t unit) const { return last_ + unit * kTileRows16 * kUnit; }

  // Rows [first_row, first_row + n_rows).
  void prepare(const MatmulArgs& m, int32_t first_row, int32_t n_rows) const {
    const RowLayout layout(m.shape.dtype, m.shape.n_in);
    const int32_t n_whole = n_rows / kTileRows16 * kTileRows16;
    if (n_whole < n_rows) clear_last(n_whole);
    const std::byte* row = m.activations + static_cast<size_t>(first_row) * layout.stride;
    for (int32_t r = 0; r < n_rows; ++r, row += layout.stride) {
      for (int64_t u = 0; u < n_units_; ++u) {
        const auto n_k = static_cast<size_t>(std::min(m.shape.n_in - u * kUnit, int64_t{kUnit}));
        float* dst = floats(u, r);
        std::memcpy(dst, row + layout.scales + u * kUnitBlocks * 4, n_k / 32 * sizeof(float));
        if constexpr (has_min) {
          const auto* sums = reinterpret_cast<const int16_t*>(row + layout.sums) + u * kUnitBlocks;
          for (size_t b = 0; b < n_k / 32; ++b) dst[kUnitBlocks + b] = static_cast<float>(sums[b]);
        }
        if (r >= n_whole) std::memcpy(last(u) + (r - n_whole) * kUnit, row + u * kUnit, n_k);
      }
    }
  }

 private:
  static constexpr int64_t kUnitFloats = int64_t{kTileChunkRows} * kPlaces;
  static_assert(kUnitFloats * sizeof(float) + kTileRows16 * kUnit <= kScratchTileUnitBytes);

  void clear_last(int32_t n_whole) const {
    std::memset(last_, 0, static_cast<size_t>(n_units_) * kTileRows16 * kUnit);
    for (int64_t u = 0; u < n_units_; ++u) std::memset(floats(u, n_whole), 0, kTileRows16 * kPlaces * sizeof(float));
  }

  int64_t n_units_;
  float* floats_;
  std::byte* last_;
};

template <class Tiles, DType dtype>
class BlockWalk {
 public:
  BlockWalk(Tiles& tiles, const MatmulArgs& m)
      : tiles_(tiles),
        m_(m),
        stride_(encoded_row_bytes(Encoding::kQ8x32, m.shape.n_in)),
        panel_stride_(static_cast<int64_t>(panel_bytes(m.shape))),
        n_units_((m.shape.n_in + kUnit - 1) / kUnit),
        s_(*reinterpret_cast<BlockScratch*>(m.scratch)),
        rows_(m.scratch + sizeof(BlockScratch), m.shape.n_in) {}

  static TileConfig config(int32_t /*n_rows*/) { return kShallowTiles; }

  // Rows [first_row, first_row + n_rows), at most kTileChunkRows, of all panels.
  void chunk(int32_t first_row, int32_t n_rows) {
    codes_ = m_.activations + static_cast<size_t>(first_row) * stride_;
    first_row_ = first_row;
    n_rows_ = n_rows;
    n_tiles_ = (n_rows + kTileRows16 - 1) / kTileRows16;
    row_places_ = int64_t{n_tiles_} * kTileRows16;
    if (!is_prepared(m_, n_rows)) rows_.prepare(m_, first_row, n_rows);
    const int64_t n_most = kGroupPanels * kTileChunkRows / row_places_;
    const int64_t n_group = std::min(kMostGroupPanels, n_most / kPairPanels * kPairPanels);
    for (int64_t p = m_.panel_begin; p < m_.panel_end; p += n_group) group(p, std::min(n_group, m_.panel_end - p));
  }

 private:
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;
  static constexpr bool kHasMin = kPacked.has_min;
  using Rows = BlockRows<kHasMin>;
  // Of a unit, so that the steps of one tile of rows prefetch all of it.
  static constexpr int kLines = prefetch_lines(unit_bytes(kPacked, kUnit), kUnitBlocks / kStepBlocks * kStepPieces);
  using Prefetcher = UnitPrefetcher<kLines>;

  // 16 rows at some blocks of two panels: what tiles multiply, and what lanes then add up. Of sums, [block][panel].
  struct Step {
    const std::byte* a;
    size_t a_stride;
    const uint8_t* b;  // of the first panel; the other's lie kPanelCodes bytes after it
    const float* w;    // d of the first block and panel, in BlockFloats
    const float* x;    // scale of the first row at the first block
    int32_t* sums;
    float* acc[kPairPanels];  // of the first row
    int n_blocks = 0;
  };
  static constexpr int kPanelCodes = kUnit / 4 * 64;
  static constexpr int kBlockCodes = 8 * 64;
  static constexpr int kPanelFloats = kUnitBlocks * 16;
  static constexpr int kTileSums = kTileRows16 * 16;

  void group(int64_t panel, int64_t n_panels) {
    const auto* src = reinterpret_cast<const uint8_t*>(m_.weights) + panel_stride_ * panel;
    const int64_t n_places = (n_panels + 1) / kPairPanels * kPairPanels;
    std::memset(s_.acc, 0, static_cast<size_t>(n_places * row_places_) * sizeof s_.acc[0]);
    for (int64_t u = 0; u < n_units_; ++u) {
      const int n_k = static_cast<int>(std::min(m_.shape.n_in - u * kUnit, int64_t{kUnit}));
      const uint8_t* below = u + 1 < n_units_ ? src + unit_bytes(kPacked, n_k) : after(panel, n_panels);
      for (int64_t i = 0; i < n_panels; i += kPairPanels) {
        const bool is_pair = n_panels - i > 1;
        prefetcher_ = Prefetcher(below + panel_stride_ * i, unit_bytes(kPacked, kUnit), is_pair ? 2 : 1,
                                 static_cast<size_t>(panel_stride_), n_tiles_);
        unpack_pair(src + panel_stride_ * i, is_pair ? panel_stride_ : 0, n_k);
        steps(u, n_k / 32, s_.acc[i * row_places_]);
      }
      src += unit_bytes(kPacked, n_k);
    }
    finish(waiting_);
    waiting_.n_blocks = 0;
    store_rows(m_, panel, n_panels, first_row_, n_rows_, s_.acc, row_places_);
  }
  // What is prefetched may lie past the matrix.
  const uint8_t* after(int64_t panel, int64_t n_panels) const {
    return reinterpret_cast<const uint8_t*>(m_.weights) + panel_stride_ * (panel + n_panels);
  }

  // A panel without a partner is its own, and is multiplied twice.
  void unpack_pair(const uint8_t* src, int64_t apart, int n_k) {
    floats_turn_ = 1 - floats_turn_;
    BlockFloats& floats = s_.floats[floats_turn_];
    for (int p = 0; p < kPairPanels; ++p, src += apart) {
      unpack_block_scales<dtype>(src, n_k / 32, floats.d[p], floats.m[p]);
      const uint8_t* low = src + unit_header_bytes(kPacked, n_k);
      const uint8_t* high = low + low_plane_bytes(kPacked, n_k);
      for (int b = 0; b < n_k / 32; ++b) {
        unpack_block(low + 64 * kPacked.low_bits * b, high + 64 * kPacked.high_bits * b, s_.codes[p] + 8 * b,
                     std::make_integer_sequence<int, 8>{});
      }
    }
  }
  template <int... g>
  static CANDOR_INLINE void unpack_block(const uint8_t* low, const uint8_t* high, uint8_t (*codes)[64],
                                         std::integer_sequence<int, g...>) {
    (store_u(codes[g], signed_codes<dtype>(unpack_codes_group<dtype, g>(low, high))), ...);
  }

  // All rows at the unit that was unpacked last. acc: of the first panel's row 0.
  void steps(int64_t u, int n_blocks, float* acc) {
    for (int32_t row = 0; row < n_tiles_ * kTileRows16; row += kTileRows16) {
      const bool is_whole = row + kTileRows16 <= n_rows_;
      const std::byte* a = is_whole ? codes_ + static_cast<size_t>(row) * stride_ + u * kUnit : rows_.last(u);
      for (int b = 0; b < n_blocks; b += kStepBlocks) {
        sums_turn_ = 1 - sums_turn_;
        step({.a = a + 32 * b,
              .a_stride = is_whole ? stride_ : kUnit,
              .b = s_.codes[0][8 * b],
              .w = s_.floats[floats_turn_].d[0][b],
              .x = rows_.floats(u, row) + b,
              .sums = s_.sums[sums_turn_][0][0][0],
              .acc = {acc + int64_t{16} * row, acc + 16 * (row_places_ + row)},
              .n_blocks = std::min(kStepBlocks, n_blocks - b)});
      }
    }
  }

  void step(const Step& next) {
    if (waiting_.n_blocks == kStepBlocks && next.n_blocks == kStepBlocks) {
      multiply_and_finish(next, waiting_);
    } else {
      finish(waiting_);
      multiply_alone(next);
    }
    waiting_ = next;
  }

  // Lanes. d of both panels at a block, then m where there are minima.
  static constexpr int kWeights = kHasMin ? 2 * kPairPanels : kPairPanels;
  static CANDOR_INLINE void load_weights_of(const float* w, int b, F32 (&weights)[kWeights]) {
#pragma GCC unroll 4
    for (int i = 0; i < kWeights; ++i) weights[i] = load(w + i * kPanelFloats + 16 * b);
  }
  // Two rows of a pass at a block. x and sums: of the pass's first one there.
  template <int first>
  static CANDOR_INLINE void add_rows(const F32 (&w)[kWeights], const float* x, const int32_t* sums,
                                     F32 (*total)[kPairPanels]) {
#pragma GCC unroll 2
    for (int r = first; r < first + 2; ++r) {
      const F32 dx = splat(x[Rows::kPlaces * r]);
#pragma GCC unroll 2
      for (int p = 0; p < kPairPanels; ++p) {
        const F32 sum = to_f32(load_i(sums + p * kTileSums + 16 * r));
        total[r][p] = fma(mul(w[p], dx), sum, total[r][p]);
        if constexpr (kHasMin) {
          total[r][p] = fma(mul(w[kPairPanels + p], dx), splat(x[Rows::kPlaces * r + kUnitBlocks]), total[r][p]);
        }
      }
    }
  }
  static CANDOR_INLINE void load_totals(const float* first, const float* second, F32 (*total)[kPairPanels]) {
#pragma GCC unroll 8
    for (int r = 0; r < kPassRows; ++r) {
      total[r][0] = load(first + 16 * r);
      total[r][1] = load(second + 16 * r);
    }
  }
  static CANDOR_INLINE void store_totals(float* first, float* second, const F32 (*total)[kPairPanels]) {
#pragma GCC unroll 8
    for (int r = 0; r < kPassRows; ++r) {
      store(first + 16 * r, total[r][0]);
      store(second + 16 * r, total[r][1]);
    }
  }

  // Of a step, or of none, whose sums are in memory.
  void finish(const Step& s) {
    if (s.n_blocks == 0) return;
    for (int row = 0; row < kTileRows16; row += kPassRows) {
      F32 total[kPassRows][kPairPanels];
      load_totals(s.acc[0] + 16 * row, s.acc[1] + 16 * row, total);
      for (int b = 0; b < s.n_blocks; ++b) {
        prefetcher_.step();
        F32 w[kWeights];
        load_weights_of(s.w, b, w);
        const float* x = s.x + Rows::kPlaces * row + b;
        const int32_t* sums = s.sums + kPairPanels * kTileSums * b + 16 * row;
        add_rows<0>(w, x, sums, total);
        add_rows<2>(w, x, sums, total);
        add_rows<4>(w, x, sums, total);
        add_rows<6>(w, x, sums, total);
      }
      store_totals(s.acc[0] + 16 * row, s.acc[1] + 16 * row, total);
    }
  }

  // Tiles. Product i of a step: of block i / 2 with panel i % 2.
  template <int i>
  CANDOR_INLINE void load_rows(const std::byte* a, size_t stride) {
    if constexpr (i % 2 == 0) tiles_.template load<4 + i / 2 % 2>(a + 32 * (i / 2), stride);
  }
  template <int i>
  CANDOR_INLINE void load_weights(const uint8_t* b) {
    tiles_.template load<6 + i % 2>(b + kPanelCodes * (i % 2) + kBlockCodes * (i / 2), 64);
  }
  template <int i>
  CANDOR_INLINE void multiply() {
    tiles_.template zero<i % 4>();
    tiles_.template dot_signed<i % 4, 4 + i / 2 % 2, 6 + i % 2>();
  }
  template <int i>
  CANDOR_INLINE void store_product(int32_t* sums) {
    if constexpr (i >= 0) tiles_.template store<i % 4>(sums + kTileSums * i, 64);
  }

  void multiply_alone(const Step& s) {
    for (int b = 0; b < s.n_blocks; ++b) {
      int32_t* sums = s.sums + kPairPanels * kTileSums * b;
      load_rows<0>(s.a + 32 * b, s.a_stride);
      load_weights<0>(s.b + kBlockCodes * b);
      multiply<0>();
      load_weights<1>(s.b + kBlockCodes * b);
      multiply<1>();
      store_product<0>(sums);
      store_product<1>(sums);
    }
  }

  // A block of a pass of `done`, and a product of `next`.
  template <int pass, int b>
  CANDOR_INLINE void piece(const Step& next, const Step& done, F32 (*total)[kPairPanels]) {
    constexpr int i = kStepBlocks * pass + b;
    F32 w[kWeights];
    load_weights_of(done.w, b, w);
    const float* x = done.x + Rows::kPlaces * kPassRows * pass + b;
    const int32_t* sums = done.sums + kPairPanels * kTileSums * b + 16 * kPassRows * pass;
    load_rows<i>(next.a, next.a_stride);
    add_rows<0>(w, x, sums, total);
    load_weights<i>(next.b);
    add_rows<2>(w, x, sums, total);
    multiply<i>();
    add_rows<4>(w, x, sums, total);
    store_product<i - 2>(next.sums);
    add_rows<6>(w, x, sums, total);
    prefetcher_.step();
  }
  template <int pass>
  CANDOR_INLINE void pass_of(const Step& next, const Step& done) {
    constexpr int kAt = 16 * kPassRows * pass;
    F32 total[kPassRows][kPairPanels];
    load_totals(done.acc[0] + kAt, done.acc[1] + kAt, total);
    piece<pass, 0>(next, done, total);
    piece<pass, 1>(next, done, total);
    piece<pass, 2>(next, done, total);
    piece<pass, 3>(next, done, total);
    store_totals(done.acc[0] + kAt, done.acc[1] + kAt, total);
  }
  // Both of four blocks. By value: nothing of them is read again after an operation of tiles.
  CANDOR_NO_INLINE void multiply_and_finish(Step next, Step done) {
    pass_of<0>(next, done);
    pass_of<1>(next, done);
    store_product<kStepPieces - 2>(next.sums);
    store_product<kStepPieces - 1>(next.sums);
  }

  Tiles& tiles_;
  const MatmulArgs& m_;
  size_t stride_;  // of rows
  int64_t panel_stride_;
  int64_t n_units_;
  BlockScratch& s_;
  Rows rows_;
  const std::byte* codes_ = nullptr;  // of the chunk's first row
  int32_t first_row_ = 0;
  int32_t n_rows_ = 0;
  int32_t n_tiles_ = 0;  // of rows
  int64_t row_places_ = 0;
  int floats_turn_ = 0;
  int sums_turn_ = 0;
  Step waiting_;  // for its float operations
  Prefetcher prefetcher_{nullptr, 0, 1, 0, 1};
};
