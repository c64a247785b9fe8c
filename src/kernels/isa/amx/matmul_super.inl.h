// Products with super-blocks on tile registers. k counts inputs; a unit is 256 k of 16 outputs, packed
// (kernels/README.md). A unit's 256 k in one go, then one sequence of float operations for a row and 16
// outputs. Between any two tile operations of a block of rows stands a share of the vector work: weight tiles of the
// next unit, float operations of the block before. Where two hardware threads share a core, tile operations in a row
// hinder one another, and work between them costs nothing (isa/README.md).

struct SuperScratch {
  SuperPlanes planes[2];  // of the unit in the tiles and of the one that is split meanwhile
  SuperFloats floats[3];  // and of the one whose float operations are not done
  BlockUnit header;
  TileSums sums[2];
  alignas(64) float acc[kGroupPanels * kTileChunkRows][16];  // [panel of the group][row_places_]
};

static_assert(sizeof(SuperScratch) <= kScratchTileBytes);

template <class Tiles, DType dtype>
class SuperWalk {
 public:
  SuperWalk(Tiles& tiles, const MatmulArgs& m)
      : tiles_(tiles),
        m_(m),
        stride_(encoded_row_bytes(Encoding::kQ8x256, m.shape.n_in)),
        panel_stride_(static_cast<int64_t>(panel_bytes(m.shape))),
        n_units_(m.shape.n_in / kUnit),
        s_(*reinterpret_cast<SuperScratch*>(m.scratch)),
        rows_(m.scratch + sizeof(SuperScratch), m.shape.n_in) {}

  // The last tile of a call's rows holds no more than there are, where they make one block of at most two tiles.
  static TileConfig config(int32_t n_rows) {
    TileConfig config = kDeepTiles;
    if (n_rows > 2 * kTileRows16) return config;
    const auto n_last = static_cast<uint8_t>((n_rows - 1) % kTileRows16 + 1);
    if (n_rows <= kTileRows16) {
      for (int t = 0; t < 6; ++t) config.n_rows[t] = n_last;
    } else if (is_pair(n_rows)) {
      for (const int t : {1, 6, 7}) config.n_rows[t] = n_last;
    } else {
      config.n_rows[1] = n_last;
      config.n_rows[5] = n_last;
    }
    return config;
  }

  // Rows [first_row, first_row + n_rows), at most kTileChunkRows, of all panels.
  void chunk(int32_t first_row, int32_t n_rows) {
    first_row_ = first_row;
    n_rows_ = n_rows;
    row_places_ = (n_rows + kTileRows16 - 1) / kTileRows16 * kTileRows16;
    n_group_ = std::min(kMostGroupPanels, kGroupPanels * kTileChunkRows / row_places_);
    if (m_.panel_begin == m_.panel_end) return;
    if (!is_prepared(m_, n_rows)) rows_.template prepare<dtype>(m_, first_row, n_rows);
    Group at = group_at(m_.panel_begin);
    split(place(at, 0, 0)).all();
    for (; at.n_panels > 0; at = group_at(at.first + at.n_panels)) group(at);
  }

 private:
  using Split = SplitTraits<dtype>;
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;
  static constexpr int kN = Split::kPlanes;
  static constexpr TileDot kLow = Split::kLowIsUnsigned ? TileDot::kUnsigned : TileDot::kSigned;
  static constexpr TileDot kHigh = Split::kIsPaired ? TileDot::kUnsigned : TileDot::kSigned;
  static constexpr int kMostTiles = 4 / kN;  // of rows in a block

  // Panels that are walked together, and how many of as many panels after them there are.
  struct Group {
    int64_t first;
    int64_t n_panels;  // 0 past the last
    int64_t n_after;
  };
  // A unit of a panel, and what is prefetched while it is split: the same panel's next unit, or the first of the next
  // group's, which may be another call's.
  struct Place {
    const uint8_t* src;
    const uint8_t* below;
  };
  struct BlockRows {
    int32_t first;
    int32_t n;
  };

  Group group_at(int64_t first) const {
    const int64_t n = std::min(n_group_, m_.panel_end - first);
    return {first, n, std::min(n, n_panels(m_.shape) - first - n)};
  }
  Place place(const Group& group, int64_t i, int64_t unit) const {
    constexpr auto kBytes = static_cast<int64_t>(unit_bytes(kPacked, kUnit));
    const auto* panel = reinterpret_cast<const uint8_t*>(m_.weights) + panel_stride_ * (group.first + i);
    const uint8_t* src = panel + kBytes * unit;
    if (unit + 1 < n_units_) return {src, src + kBytes};
    return {src, i < group.n_after ? panel + panel_stride_ * group.n_panels : src};
  }
  // The unit that is walked after another; after the last one, it once more.
  Place after(const Group& group, int64_t i, int64_t unit) const {
    if (i + 1 < group.n_panels) return place(group, i + 1, unit);
    if (unit + 1 < n_units_) return place(group, 0, unit + 1);
    const Group next = group_at(group.first + group.n_panels);
    return next.n_panels > 0 ? place(next, 0, 0) : place(group, i, unit);
  }

  // Into the planes and floats after those that were split last.
  SuperSplit<dtype> split(const Place& at) {
    planes_turn_ = 1 - planes_turn_;
    floats_turn_ = floats_turn_ == 2 ? 0 : floats_turn_ + 1;
    return {at.src, at.below, s_.header, s_.planes[planes_turn_], s_.floats[floats_turn_]};
  }

  void group(const Group& at) {
    std::memset(s_.acc, 0, static_cast<size_t>(at.n_panels * row_places_) * sizeof s_.acc[0]);
    for (int64_t u = 0; u < n_units_; ++u) {
      if (n_rows_ <= kTileRows16) {
        load_few(u);
      } else if (is_pair(n_rows_)) {
        load_pair(u);
      }
      for (int64_t i = 0; i < at.n_panels; ++i) unit(u, after(at, i, u), s_.acc[i * row_places_]);
    }
    waiting_.all();
    store_rows(m_, at.first, at.n_panels, first_row_, n_rows_, s_.acc, row_places_);
  }

  // The unit that was split before, while `next` is. acc: of row 0.
  void unit(int64_t u, const Place& next, float* acc) {
    planes_ = &s_.planes[planes_turn_];
    floats_ = &s_.floats[floats_turn_];
    const SuperSplit<dtype> next_split = split(next);
    if (n_rows_ <= kTileRows16) {
      few(next_split, u, acc);
    } else if (is_pair(n_rows_)) {
      pair(next_split, u, acc);
    } else {
      blocks<kMostTiles, true>(next_split, u, 0, acc);
    }
  }

  const std::byte* codes_of(int64_t u, int32_t row) const {
    return m_.activations + static_cast<size_t>(first_row_ + row) * stride_ + u * kUnit;
  }
  // 16 rows, the last ones of the chunk and zeros, or, past all rows, anything.
  TileOperand tile_of(int64_t u, int32_t first) const {
    if (first + kTileRows16 <= n_rows_) return {codes_of(u, first), stride_};
    return {rows_.last(u), kUnit};
  }

  // Rows from `first` on at unit u, as many tiles of 16 as n at a time. The first block splits.
  template <int n, bool splits>
  void blocks(const SuperSplit<dtype>& split, int64_t u, int32_t first, float* acc) {
    constexpr int32_t kLeast = (n / 2) * kTileRows16;  // fewer or as many are the next smaller block's
    if (n_rows_ - first <= kLeast) {
      if constexpr (n > 1) blocks<n / 2, splits>(split, u, first, acc);
      return;
    }
    block<n, splits>(split, u, {first, std::min(n * kTileRows16, n_rows_ - first)}, acc);
    for (first += n * kTileRows16; n_rows_ - first > kLeast; first += n * kTileRows16) {
      block<n, false>(split, u, {first, std::min(n * kTileRows16, n_rows_ - first)}, acc);
    }
    if constexpr (n > 1) {
      if (first < n_rows_) blocks<n / 2, false>(split, u, first, acc);
    }
  }

  // The vector work beside n_operations of tiles: a unit to be split and n_finished rows, in equal shares, as a load
  // takes as long as a dot where threads share a core.
  template <int n_operations, int n_finished, bool splits>
  struct Beside {
    static constexpr int kGroups = SuperSplit<dtype>::kGroups;
    static constexpr int kFinish = 2;  // rows at once

    SuperSplit<dtype> split;
    SuperFinish<dtype> finish;

    // After operation i.
    template <int i>
    CANDOR_INLINE void after() {
      if constexpr (splits) {
        constexpr int kFirst = share(i, kTileSteps * kGroups);
        groups<kFirst>(std::make_integer_sequence<int, share(i + 1, kTileSteps * kGroups) - kFirst>{});
      }
      constexpr int kFinished = share(i, n_finished / kFinish);
      finishes(std::make_integer_sequence<int, share(i + 1, n_finished / kFinish) - kFinished>{});
    }

   private:
    static constexpr int share(int i, int n) { return i * n / n_operations; }
    template <int first, int... g>
    CANDOR_INLINE void groups(std::integer_sequence<int, g...>) {
      (group<first + g>(), ...);
    }
    template <int... r>
    CANDOR_INLINE void finishes(std::integer_sequence<int, r...>) {
      ((static_cast<void>(r), finish.template rows<kFinish>()), ...);
    }
    template <int g>
    CANDOR_INLINE void group() {
      if constexpr (g % kGroups == 0) split.begin(g / kGroups);
      split.template group<g % kGroups>();
    }
  };

  // With 64 k of n tiles of rows.
  template <int n>
  static constexpr int kStepOperations = kN + n + kN* n;

  // 64 k of the tiles of rows from r on, two at a time: their loads, then their dots.
  template <int n, int i, int r, class Share>
  CANDOR_INLINE void two(const std::array<TileOperand, n>& a, Share& beside) {
    constexpr int kTwo = n - r > 1 ? 2 : 1;
    constexpr int kLoad = i * kStepOperations<n> + 1 + 2 * r;  // operations
    constexpr int kDot = kLoad + kTwo + kN - 1;
    tiles_.template load<4>(a[r].data + 64 * i, a[r].stride);
    beside.template after<kLoad>();
    if constexpr (kTwo == 2) {
      tiles_.template load<5>(a[r + 1].data + 64 * i, a[r + 1].stride);
      beside.template after<kLoad + 1>();
    }
    if constexpr (kN == 2) {
      tiles_.template load<7>(planes_->codes[1][16 * i], 64);
      beside.template after<kLoad + kTwo>();
    }
    dots<kLow, r * kN, 6, kTwo, kDot>(beside);
    if constexpr (kN == 2) dots<kHigh, r * kN + 1, 7, kTwo, kDot + kTwo>(beside);
  }
  // Operations from i on: the tiles of rows, one or two, with those of a plane.
  template <TileDot dot, int sum, int plane, int n, int i, class Share>
  CANDOR_INLINE void dots(Share& beside) {
    tile_dot<Tiles, dot, sum, 4, plane>(tiles_);
    beside.template after<i>();
    if constexpr (n == 2) {
      tile_dot<Tiles, dot, sum + kN, 5, plane>(tiles_);
      beside.template after<i + 1>();
    }
  }

  template <int n, int i, class Share>
  CANDOR_INLINE void block_step(const std::array<TileOperand, n>& a, Share& beside) {
    tiles_.template load<6>(planes_->codes[0][16 * i], 64);
    beside.template after<i * kStepOperations<n>>();
    two<n, i, 0>(a, beside);
    if constexpr (n > 2) two<n, i, 2>(a, beside);
  }
  template <int n, bool splits>
  CANDOR_NO_INLINE void block(const SuperSplit<dtype>& split, int64_t u, BlockRows rows, float* acc) {
    std::array<TileOperand, n> a;
    for (int32_t r = 0; r < n; ++r) a[r] = tile_of(u, rows.first + r * kTileRows16);
    Beside<kTileSteps * kStepOperations<n>, kMostTiles * kTileRows16, splits> beside = {split, waiting_};
    zero_sums<Tiles, n * kN>(tiles_);
    block_step<n, 0>(a, beside);
    block_step<n, 1>(a, beside);
    block_step<n, 2>(a, beside);
    block_step<n, 3>(a, beside);
    keep_sums<n>(u, rows, acc);
  }

  // All rows, at most 16: their unit stays in tiles 2 to 5 while the panels of a group pass.
  void load_few(int64_t u) {
    const TileOperand a = tile_of(u, 0);
    tiles_.template load<2>(a.data, a.stride);
    tiles_.template load<3>(a.data + 64, a.stride);
    tiles_.template load<4>(a.data + 128, a.stride);
    tiles_.template load<5>(a.data + 192, a.stride);
  }
  template <int i, class Share>
  CANDOR_INLINE void few_step(Share& beside) {
    constexpr int kFirst = 2 * kN * i;  // operation
    tiles_.template load<6>(planes_->codes[0][16 * i], 64);
    beside.template after<kFirst>();
    if constexpr (kN == 2) {
      tiles_.template load<7>(planes_->codes[1][16 * i], 64);
      beside.template after<kFirst + 1>();
    }
    tile_dot<Tiles, kLow, 0, 2 + i, 6>(tiles_);
    beside.template after<kFirst + kN>();
    if constexpr (kN == 2) {
      tile_dot<Tiles, kHigh, 1, 2 + i, 7>(tiles_);
      beside.template after<kFirst + 3>();
    }
  }
  CANDOR_NO_INLINE void few(const SuperSplit<dtype>& split, int64_t u, float* acc) {
    Beside<2 * kN * kTileSteps, kTileRows16, true> beside = {split, waiting_};
    zero_sums<Tiles, kN>(tiles_);
    few_step<0>(beside);
    few_step<1>(beside);
    few_step<2>(beside);
    few_step<3>(beside);
    keep_sums<1>(u, {0, n_rows_}, acc);
  }

  // 17 to 32 rows of two planes: sums of one plane at a time in tiles 0 and 1, weights in 2, the first 16 rows in 3 to
  // 5 and the others in 6 and 7. The high plane's k descend, so that of eight tiles of rows, which do not fit, five
  // stay from one pass, or panel, to the next.
  static bool is_pair(int32_t n_rows) { return kN == 2 && n_rows > kTileRows16 && n_rows <= 2 * kTileRows16; }
  static constexpr int pair_tile(int block, int step) { return block == 0 ? 3 + step % 3 : 6 + step % 2; }
  template <int block, int step>
  CANDOR_INLINE void load_pair_tile() {
    tiles_.template load<pair_tile(block, step)>(pair_[block].data + 64 * step, pair_[block].stride);
  }
  void load_pair(int64_t u) {
    pair_ = {tile_of(u, 0), tile_of(u, kTileRows16)};
    load_pair_tile<0, 0>();
    load_pair_tile<0, 1>();
    load_pair_tile<0, 2>();
    load_pair_tile<1, 0>();
    load_pair_tile<1, 1>();
  }
  // Passes load what the one before replaced.
  static constexpr bool loads_first(int plane, int step) { return plane == 0 ? step == 3 : step == 0; }
  static constexpr bool loads_second(int plane, int step) { return plane == 0 ? step >= 2 : step < 2; }
  // Operations before a step of a pass, which goes up for plane 0 and down for plane 1.
  static constexpr int operations_before(int plane, int step) {
    int n = 0;
    for (int s = plane == 0 ? 0 : kTileSteps - 1; s != step; s += plane == 0 ? 1 : -1) {
      n += 3 + (loads_first(plane, s) ? 1 : 0) + (loads_second(plane, s) ? 1 : 0);
    }
    return n;
  }
  // 64 k of a plane; its operations are those from `pass` on.
  template <int plane, int step, int pass, class Share>
  CANDOR_INLINE void pair_step(Share& beside) {
    constexpr int i = pass + operations_before(plane, step);
    constexpr bool kLoadsFirst = loads_first(plane, step);
    constexpr bool kLoadsSecond = loads_second(plane, step);
    constexpr int kDot = i + 1 + (kLoadsFirst ? 1 : 0) + (kLoadsSecond ? 1 : 0);
    constexpr TileDot kSign = plane == 0 ? kLow : kHigh;
    tiles_.template load<2>(planes_->codes[plane][16 * step], 64);
    beside.template after<i>();
    if constexpr (kLoadsFirst) {
      load_pair_tile<0, step>();
      beside.template after<i + 1>();
    }
    if constexpr (kLoadsSecond) {
      load_pair_tile<1, step>();
      beside.template after<kDot - 1>();
    }
    tile_dot<Tiles, kSign, 0, pair_tile(0, step), 2>(tiles_);
    beside.template after<kDot>();
    tile_dot<Tiles, kSign, 1, pair_tile(1, step), 2>(tiles_);
    beside.template after<kDot + 1>();
  }
  template <int plane, int pass, class Share>
  CANDOR_INLINE void pair_plane(Share& beside, TileSums& sums) {
    zero_sums<Tiles, 2>(tiles_);
    pair_step<plane, plane == 0 ? 0 : 3, pass>(beside);
    pair_step<plane, plane == 0 ? 1 : 2, pass>(beside);
    pair_step<plane, plane == 0 ? 2 : 1, pass>(beside);
    pair_step<plane, plane == 0 ? 3 : 0, pass>(beside);
    tiles_.template store<0>(sums.sums[kPlaneRows * plane], 64);
    tiles_.template store<1>(sums.sums[kPlaneRows * plane + kTileRows16], 64);
  }
  CANDOR_NO_INLINE void pair(const SuperSplit<dtype>& split, int64_t u, float* acc) {
    constexpr int kPass = kTileSteps * 3 + 3;  // operations
    Beside<2 * kPass, 2 * kTileRows16, true> beside = {split, waiting_};
    sums_turn_ = 1 - sums_turn_;
    pair_plane<0, 0>(beside, s_.sums[sums_turn_]);
    pair_plane<1, kPass>(beside, s_.sums[sums_turn_]);
    wait(u, {0, n_rows_}, acc);
  }

  template <int r>
  void store_rows_of(TileSums& sums) {
    tiles_.template store<r * kN>(sums.sums[kTileRows16 * r], 64);
    if constexpr (kN == 2) tiles_.template store<r * 2 + 1>(sums.sums[kPlaneRows + kTileRows16 * r], 64);
  }
  template <int n>
  void store_planes(TileSums& sums) {
    store_rows_of<0>(sums);
    if constexpr (n > 1) store_rows_of<1>(sums);
    if constexpr (n > 2) {
      store_rows_of<2>(sums);
      store_rows_of<3>(sums);
    }
  }
  template <int n>
  void keep_sums(int64_t u, BlockRows rows, float* acc) {
    sums_turn_ = 1 - sums_turn_;
    store_planes<n>(s_.sums[sums_turn_]);
    wait(u, rows, acc);
  }
  // For the float operations of what was stored last.
  void wait(int64_t u, BlockRows rows, float* acc) {
    waiting_ = SuperFinish<dtype>(*floats_, rows_.pairs(u) + SuperRows::kMostPairs * rows.first,
                                  rows_.scales(u) + rows.first, s_.sums[sums_turn_], acc + 16 * rows.first, rows.n);
  }

  Tiles& tiles_;
  const MatmulArgs& m_;
  size_t stride_;  // of rows
  int64_t panel_stride_;
  int64_t n_units_;
  SuperScratch& s_;
  SuperRows rows_;
  int32_t first_row_ = 0;
  int32_t n_rows_ = 0;
  int64_t n_group_ = 0;  // panels walked together: rows that they share come from further away once for all
  int64_t row_places_ = 0;
  int planes_turn_ = 0;
  int floats_turn_ = 0;
  const SuperPlanes* planes_ = nullptr;  // of the unit in the tiles
  const SuperFloats* floats_ = nullptr;
  SuperFinish<dtype> waiting_;
  int sums_turn_ = 0;
  std::array<TileOperand, 2> pair_ = {};
};
