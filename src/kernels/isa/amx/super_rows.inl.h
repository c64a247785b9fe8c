// Products with super-blocks on tile registers: what they need of the activations beside the codes (sums, scales, the
// last few rows), and the float operations that end a unit of 256 k.

constexpr int kPlaneRows = 2 * kTileRows16;  // of a block, where there are two planes

// Sums of at most four tiles, as [row][16]; the second plane's from row kPlaneRows on.
struct alignas(64) TileSums {
  int32_t sums[4 * kTileRows16][16];
};

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

// The float operations of a block of rows of a panel, a few rows at a time, so that they are done beside the tile
// operations of another block.
template <DType dtype>
class SuperFinish {
 public:
  SuperFinish() = default;
  SuperFinish(const SuperFloats& floats, const int32_t* pairs, const float* scales, const TileSums& sums, float* acc,
              int32_t n_rows)
      : floats_(&floats), pairs_(pairs), scales_(scales), sums_(sums.sums[0]), acc_(acc), left_(n_rows) {}

  // The next n rows; those past the last are computed too, and not used.
  template <int n>
  CANDOR_INLINE void rows() {
    if (left_ <= 0) return;
    I32 mins[n];
    if constexpr (kPacked.has_min) find_mins<n>(mins);
    const F32 d = load(floats_->d);
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) {
      I32 total = load_i(sums_ + 16 * r);
      if constexpr (Split::kPlanes == 2) {
        total = add_i(total, shl_i<Split::kShift>(load_i(sums_ + 16 * (kPlaneRows + r))));
      }
      F32 u = to_f32(total);
      if constexpr (kPacked.has_min) {
        u = fma(d, u, mul(load(floats_->minus_m), to_f32(mins[r])));
      } else {
        u = mul(d, u);
      }
      store(acc_ + 16 * r, fma_scalar(u, scales_ + r, load(acc_ + 16 * r)));
    }
    left_ -= n;
    sums_ += 16 * n;
    pairs_ += SuperRows::kMostPairs * n;
    scales_ += n;
    acc_ += 16 * n;
  }
  void all() {
    while (left_ > 0) rows<2>();
  }

 private:
  using Split = SplitTraits<dtype>;
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;

  template <int n>
  CANDOR_INLINE void find_mins(I32* mins) const {
#pragma GCC unroll 8
    for (int p = 0; p < kPacked.n_groups / 2; ++p) {
      const I32 pair = load_i(floats_->min_pairs[p]);
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r) {
        mins[r] = dot2(p == 0 ? splat_i(0) : mins[r], pair, pairs_[SuperRows::kMostPairs * r + p]);
      }
    }
  }

  const SuperFloats* floats_ = nullptr;
  const int32_t* pairs_ = nullptr;
  const float* scales_ = nullptr;
  const int32_t* sums_ = nullptr;
  float* acc_ = nullptr;
  int32_t left_ = 0;
};
