// Products with super-blocks on tile registers: 256 k in one go, then one sequence of float operations for a row and 16
// outputs. Beside the tile operations of a block of rows the next weight tiles are made or, once they are, the float
// operations of the block before are done; what is left of those follows the tile operations.

struct SuperScratch {
  SuperPlanes planes[2];  // of the unit in the tiles and of the one that is split meanwhile
  SuperFloats floats[3];  // and of the one whose float operations are not done
  BlockUnit header;
  TileSums sums[2];
  alignas(64) float acc[kGroupPanels][kTileChunkRows][16];
};

static_assert(sizeof(SuperScratch) <= kScratchTileBytes);

// What the rows of a chunk bring besides the codes of whole tiles; after the rest of the scratch.
class SuperRows {
 public:
  SuperRows(std::byte* scratch, int64_t n_in)
      : pairs_(reinterpret_cast<int32_t*>(scratch)),
        scales_(reinterpret_cast<float*>(pairs(n_in / kUnit))),
        last_(reinterpret_cast<std::byte*>(scales(n_in / kUnit))) {}

  // Sums of x of two sub-scale groups, kMostPairs a row.
  int32_t* pairs(int64_t unit) const { return pairs_ + unit * kTileChunkRows * kMostPairs; }
  float* scales(int64_t unit) const { return scales_ + unit * kTileChunkRows; }
  // [16][kUnit] codes of the rows past the last whole tile, then zeros.
  std::byte* last(int64_t unit) const { return last_ + unit * kTileRows16 * kUnit; }

  // Rows [first_row, first_row + n_rows).
  template <DType dtype>
  void prepare(const MatmulArgs& m, int32_t first_row, int32_t n_rows) const {
    const RowLayout layout(dtype, m.shape.n_in);
    const int64_t n_units = m.shape.n_in / kUnit;
    const int32_t n_whole = n_rows / kTileRows16 * kTileRows16;
    const std::byte* row = m.activations + static_cast<size_t>(first_row) * layout.stride;
    if (n_whole < n_rows) std::memset(last_, 0, static_cast<size_t>(n_units) * kTileRows16 * kUnit);
    for (int32_t r = 0; r < n_rows; ++r, row += layout.stride) {
      for (int64_t u = 0; u < n_units; ++u) {
        std::memcpy(scales(u) + r, row + layout.scales + sizeof(float) * static_cast<size_t>(u), sizeof(float));
        prepare_pairs<dtype>(row + layout.sums + 32 * u, pairs(u) + kMostPairs * r);
        if (r >= n_whole) std::memcpy(last(u) + (r - n_whole) * kUnit, row + u * kUnit, kUnit);
      }
    }
  }

  static constexpr int32_t kMostPairs = 8;

 private:
  // sums: 16 of 16 k.
  template <DType dtype>
  static void prepare_pairs(const std::byte* sums, int32_t* pairs) {
    constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
    const __m256i sixteens = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
    if constexpr (f.has_min && f.n_groups == 16) _mm256_store_si256(reinterpret_cast<__m256i*>(pairs), sixteens);
    if constexpr (f.has_min && f.n_groups == 8) {
      const __m256i groups = _mm256_madd_epi16(sixteens, _mm256_set1_epi16(1));
      _mm_store_si128(reinterpret_cast<__m128i*>(pairs), _mm256_cvtepi32_epi16(groups));
    }
  }

  int32_t* pairs_;
  float* scales_;
  std::byte* last_;
};

// The float operations of a block of rows of a panel, in kTileSteps pieces; within a piece all rows side by side, as
// those of one wait for one another. Rows past the last are computed too, in vain.
template <DType dtype>
class SuperFinish {
 public:
  SuperFinish() = default;
  SuperFinish(const SuperFloats& floats, const int32_t* pairs, const float* scales, const TileSums& sums, float* acc,
              int32_t n_rows)
      : floats_(&floats), pairs_(pairs), scales_(scales), sums_(sums.sums[0]), acc_(acc), n_(n_rows) {}

  inline __attribute__((always_inline)) void step() {
    if (next_ >= n_) return;
    const int32_t* low = sums_ + next_ / kTileRows16 * (Split::kPlanes * kTileRows16 * 16) + next_ % kTileRows16 * 16;
    finish(low, pairs_ + SuperRows::kMostPairs * next_, scales_ + next_, acc_ + 16 * next_);
    next_ += kPiece;
  }
  void all() {
    while (next_ < n_) step();
  }

 private:
  using Split = SplitTraits<dtype>;
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;
  static constexpr int kPairs = kPacked.has_min ? kPacked.n_groups / 2 : 0;
  static constexpr int32_t kPiece = 64 / Split::kPlanes / kTileSteps;  // rows; of the largest block

  inline __attribute__((always_inline)) void finish(const int32_t* low, const int32_t* pairs, const float* scales,
                                                    float* acc) const {
    const F32 d = load(floats_->d);
    I32 min_pairs[kPairs + 1];
    F32 minus_m = d;
    if constexpr (kPacked.has_min) {
      minus_m = load(floats_->minus_m);
#pragma GCC unroll 8
      for (int p = 0; p < kPairs; ++p) min_pairs[p] = load_i(floats_->min_pairs[p]);
    }
    I32 mins[kPiece];
    if constexpr (kPacked.has_min) {
#pragma GCC unroll 8
      for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 16
        for (int r = 0; r < kPiece; ++r) {
          mins[r] = dot2(p == 0 ? splat_i(0) : mins[r], min_pairs[p], pairs[SuperRows::kMostPairs * r + p]);
        }
      }
    }
    F32 u[kPiece];
#pragma GCC unroll 16
    for (int r = 0; r < kPiece; ++r) {
      I32 total = load_i(low + 16 * r);
      if constexpr (Split::kPlanes == 2) {
        total = add_i(total, shl_i<Split::kShift>(load_i(low + 16 * (kTileRows16 + r))));
      }
      u[r] = to_f32(total);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kPiece; ++r) {
      if constexpr (kPacked.has_min) {
        u[r] = fma(d, u[r], mul(minus_m, to_f32(mins[r])));
      } else {
        u[r] = mul(d, u[r]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kPiece; ++r) store(acc + 16 * r, fma_scalar(u[r], scales + r, load(acc + 16 * r)));
  }

  const SuperFloats* floats_ = nullptr;
  const int32_t* pairs_ = nullptr;
  const float* scales_ = nullptr;
  const int32_t* sums_ = nullptr;
  float* acc_ = nullptr;
  int32_t n_ = 0;
  int32_t next_ = 0;
};

template <class Tiles, DType dtype>
class SuperWalk {
 public:
  SuperWalk(Tiles& tiles, const MatmulArgs& m)
      : tiles_(tiles),
        m_(m),
        stride_(encoded_row_bytes(Encoding::kQ8x256, m.shape.n_in)),
        panel_stride_(panel_bytes(m.shape)),
        s_(*reinterpret_cast<SuperScratch*>(m.scratch)),
        rows_(m.scratch + sizeof(SuperScratch), m.shape.n_in) {}

  // Rows [first_row, first_row + n_rows), at most kTileChunkRows, of all panels.
  void chunk(int32_t first_row, int32_t n_rows) {
    first_row_ = first_row;
    n_rows_ = n_rows;
    if (!is_prepared(m_, n_rows)) rows_.template prepare<dtype>(m_, first_row, n_rows);
    split({.group = m_.panel_begin});
    split_.all();
    for (int64_t p = m_.panel_begin; p < m_.panel_end; p += kGroupPanels) group(p);
  }

 private:
  using Split = SplitTraits<dtype>;
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;
  static constexpr int kN = Split::kPlanes;
  static constexpr TileDot kLow = Split::kLowIsUnsigned ? TileDot::kUnsigned : TileDot::kSigned;
  static constexpr TileDot kHigh = Split::kIsPaired ? TileDot::kUnsigned : TileDot::kSigned;

  // A unit of a panel of the group that begins at panel `group`.
  struct Place {
    int64_t group;
    int64_t i = 0;
    int64_t unit = 0;
  };

  int64_t n_units() const { return m_.shape.n_in / kUnit; }
  int64_t panels_of(int64_t group) const { return std::min(kGroupPanels, m_.panel_end - group); }
  const uint8_t* bytes_at(const Place& at) const {
    return reinterpret_cast<const uint8_t*>(m_.weights) + static_cast<size_t>(at.group + at.i) * panel_stride_ +
           static_cast<size_t>(at.unit) * unit_bytes(kPacked, kUnit);
  }
  // The same panel's next unit, or the first of the next group's.
  Place below(const Place& at) const {
    if (at.unit + 1 < n_units()) return {at.group, at.i, at.unit + 1};
    return {at.group + kGroupPanels, at.i, 0};
  }
  Place after(const Place& at) const {
    if (at.i + 1 < panels_of(at.group)) return {at.group, at.i + 1, at.unit};
    return below({at.group, 0, at.unit});
  }

  bool exists(const Place& at) const { return at.group + at.i < m_.panel_end; }

  // Begins the unit at `at`, if there is one.
  void split(const Place& at) {
    if (!exists(at)) return;
    const Place next = exists(below(at)) ? below(at) : at;
    ++n_split_;
    split_ =
        SuperSplit<dtype>(bytes_at(at), bytes_at(next), s_.header, s_.planes[n_split_ % 2], s_.floats[n_split_ % 3]);
  }

  void group(int64_t first) {
    const int64_t n_panels = panels_of(first);
    for (int64_t i = 0; i < n_panels; ++i) {
      std::memset(s_.acc[i], 0, static_cast<size_t>(n_rows_) * sizeof s_.acc[0][0]);
    }
    for (int64_t u = 0; u < n_units(); ++u) {
      for (int64_t i = 0; i < n_panels; ++i) {
        planes_ = &s_.planes[n_split_ % 2];
        floats_ = &s_.floats[n_split_ % 3];
        split(after({first, i, u}));
        blocks<4 / kN>(u, 0, s_.acc[i][0]);
      }
    }
    waiting_.all();
    store_rows(m_, first, n_panels, first_row_, n_rows_, s_.acc);
  }

  // Rows from `first` on at unit u, n tiles of 16 at a time, then fewer. acc: of row 0.
  template <int n>
  void blocks(int64_t u, int32_t first, float* acc) {
    constexpr int32_t kRows = n * kTileRows16;
    const std::byte* codes = m_.activations + static_cast<size_t>(first_row_) * stride_ + u * kUnit;
    for (; first + kRows <= n_rows_; first += kRows) {
      block<n>({codes + static_cast<size_t>(first) * stride_, stride_}, u, {first, kRows}, acc);
    }
    if constexpr (n > 1) {
      blocks<n / 2>(u, first, acc);
    } else if (first < n_rows_) {
      block<1>({rows_.last(u), kUnit}, u, {first, n_rows_ - first}, acc);
    }
  }

  struct BlockRows {
    int32_t first;
    int32_t n;
  };

  template <int n>
  void block(TileOperand a, int64_t u, BlockRows rows, float* acc) {
    zero_sums<Tiles, n * kN>(tiles_);
    for (int i = 0; i < kTileSteps; ++i) {
      tiles_.template load<6>(planes_->codes[0][16 * i], 64);
      tile_step<Tiles, n, kLow, kN>(tiles_, a.data + 64 * i, a.stride);
      if constexpr (kN == 2) {
        tiles_.template load<7>(planes_->codes[1][16 * i], 64);
        second_tile_step<Tiles, n, kHigh>(tiles_);
      }
      if (split_.is_done()) {
        waiting_.step();
      } else {
        split_.step();
      }
    }
    waiting_.all();
    sums_turn_ = 1 - sums_turn_;
    store_sums<Tiles, n * kN>(tiles_, s_.sums[sums_turn_].sums[0]);
    waiting_ = SuperFinish<dtype>(*floats_, rows_.pairs(u) + SuperRows::kMostPairs * rows.first,
                                  rows_.scales(u) + rows.first, s_.sums[sums_turn_], acc + 16 * rows.first, rows.n);
  }

  Tiles& tiles_;
  const MatmulArgs& m_;
  size_t stride_;  // of rows
  size_t panel_stride_;
  SuperScratch& s_;
  SuperRows rows_;
  int32_t first_row_ = 0;
  int32_t n_rows_ = 0;
  uint32_t n_split_ = 0;
  SuperSplit<dtype> split_;
  const SuperPlanes* planes_ = nullptr;  // of the unit in the tiles
  const SuperFloats* floats_ = nullptr;
  SuperFinish<dtype> waiting_;
  int sums_turn_ = 0;
};
