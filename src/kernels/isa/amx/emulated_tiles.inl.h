// Tile registers in software, for tests: the interface and the results of AsmTiles on any processor. The shapes are
// checked as the processor checks them. No include guard: compiled inside a target region, for its fma.

inline void add_to(float* sums, F32 a) {
  store(sums, add(load(sums), a));
}

class EmulatedTiles {
 public:
  explicit EmulatedTiles(const TileConfig& config) : config_(config) { std::memset(tiles_, 0, sizeof tiles_); }
  EmulatedTiles(const EmulatedTiles&) = delete;
  EmulatedTiles& operator=(const EmulatedTiles&) = delete;

  template <int t>
  void zero() {
    std::memset(&tiles_[t], 0, sizeof(Tile));
  }
  template <int t>
  void load(const void* src, size_t stride_bytes) {
    zero<t>();
    for (size_t r = 0; r < config_.n_rows[t]; ++r) {
      std::memcpy(tiles_[t].bytes[r], static_cast<const std::byte*>(src) + r * stride_bytes, config_.row_bytes[t]);
    }
  }
  template <int t>
  void store(void* dst, size_t stride_bytes) {
    for (size_t r = 0; r < config_.n_rows[t]; ++r) {
      std::memcpy(static_cast<std::byte*>(dst) + r * stride_bytes, tiles_[t].bytes[r], config_.row_bytes[t]);
    }
  }

  template <int c, int a, int b>
  void dot_signed() {
    dot_int8<int8_t>(tiles_[c], tiles_[a], tiles_[b], depth<c, a, b>());
  }
  template <int c, int a, int b>
  void dot_unsigned() {
    dot_int8<uint8_t>(tiles_[c], tiles_[a], tiles_[b], depth<c, a, b>());
  }
  template <int c, int a, int b>
  void dot_bf16() {
    const int n = depth<c, a, b>();
    for (int row = 0; row < 16; ++row) {
      F32 even = splat(0.0f);
      F32 odd = splat(0.0f);
      for (int k = 0; k < n; ++k) {
        const I32 pairs = splat_i(word(tiles_[a], row, k));
        const I32 weights = load_i(reinterpret_cast<const int32_t*>(tiles_[b].bytes[k]));
        even = fma(even_bf16(pairs), even_bf16(weights), even);
        odd = fma(odd_bf16(pairs), odd_bf16(weights), odd);
      }
      float sums[16];
      std::memcpy(sums, tiles_[c].bytes[row], sizeof sums);
      add_to(sums, add(even, odd));
      std::memcpy(tiles_[c].bytes[row], sums, sizeof sums);
    }
  }

 private:
  struct alignas(64) Tile {
    uint8_t bytes[16][64];
  };

  static int32_t word(const Tile& tile, int row, int k) {
    int32_t value = 0;
    std::memcpy(&value, tile.bytes[row] + 4 * k, 4);
    return value;
  }
  // Groups of k of a product. Shapes that the processor would refuse end the test program.
  template <int c, int a, int b>
  int depth() const {
    const int n = config_.n_rows[b];
    CANDOR_CHECK(config_.row_bytes[a] == 4 * n && config_.n_rows[c] == config_.n_rows[a] &&
                 config_.row_bytes[c] == config_.row_bytes[b]);
    return n;
  }

  template <class Weight>
  static void dot_int8(Tile& c, const Tile& a, const Tile& b, int n) {
    for (int row = 0; row < 16; ++row) {
      int32_t sums[16];
      std::memcpy(sums, c.bytes[row], sizeof sums);
      for (int k = 0; k < 4 * n; ++k) {
        const int x = static_cast<int8_t>(a.bytes[row][k]);
        for (int i = 0; i < 16; ++i) sums[i] += x * static_cast<Weight>(b.bytes[k / 4][4 * i + k % 4]);
      }
      std::memcpy(c.bytes[row], sums, sizeof sums);
    }
  }

  TileConfig config_;
  Tile tiles_[8];
};
