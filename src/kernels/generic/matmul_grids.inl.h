// Products with weights whose codes name vectors of a grid: a unit's indices become bytes and sub-scales, once for all
// rows that share it, and then it is multiplied as any super-block without minima whose weights need 8 bits. That part
// is compiled once for all grids, as if for IQ2_S.

template <DType dtype>
struct GridProduct : BlockProduct<DType::kIQ2_S> {
  static constexpr GridFormat kGrid = grid_format_of(dtype);
  static constexpr int kReadTiles = 0;
  static constexpr int kIndices = 32 / kGrid.span;  // of 32 k
  static constexpr int kPairsOf32 = kIndices / 2;
  using Pairs = std::make_integer_sequence<int, kPairsOf32>;
  static constexpr int kHighBits = kGrid.index_bits - 8;
  static constexpr size_t kStreamAhead = kStreamAheadOfCodes;

  static constexpr size_t bytes_of_unit(int) { return grid_unit_bytes(kGrid); }

  template <class Prefetcher>
  static Unpacked unpack(const uint8_t* src, size_t apart, int, int64_t n_panels, Unit* units, Prefetcher& prefetcher) {
    for (int64_t p = 0; p < n_panels; ++p) unpack_grid(src + static_cast<size_t>(p) * apart, units[p], prefetcher);
    return {units};
  }

  // The values of codes as the dot products want them.
  struct Values {
    alignas(16) uint8_t bytes[16];
  };
  static constexpr Values values() {
    Values values{};
    for (size_t i = 0; i < 16; ++i) {
      values.bytes[i] = static_cast<uint8_t>(kGrid.values[i] + (kDotIsSigned ? 0 : 128));
    }
    return values;
  }

  static void unpack_scales(const uint8_t* src, Unit& dst) {
    constexpr int kHalf = kGrid.n_groups / 2;
    constexpr int kRepeats = 16 / kGrid.n_groups;
    for (int i = 0; i < kHalf; ++i) {
      const I32 both = shl_i<1>(widen_u8(src + 16 * i));
      const I32 low = or_i(and_i(both, splat_i(30)), splat_i(1));
      const I32 high = or_i(shr_i<4>(and_i(both, splat_i(480))), splat_i(1));
      for (int r = 0; r < kRepeats; ++r) {
        store_i(dst.scales[kRepeats * i + r], low);
        store_i(dst.scales[kRepeats * (i + kHalf) + r], high);
      }
    }
  }

  // Indices 2 p (low halves) and 2 p + 1 of 32 k's number b. is_odd: whether b is.
  template <bool is_odd, int p>
  static CANDOR_INLINE I32 index_pair(const uint8_t* src, int b) {
    const int at = kIndices * b + 2 * p;
    const I32 low = widen_u8_pairs(src + grid_indices_at(kGrid) + 16 * at);
    if constexpr (kHighBits == 0) {
      return low;
    } else {
      constexpr int kAt = ((is_odd ? kIndices : 0) + 2 * p) * kHighBits % 8;
      constexpr int kMask = (1 << kHighBits) - 1;
      const I32 byte = widen_u8(src + grid_high_bits_at(kGrid) + 16 * (at * kHighBits / 8));
      const I32 first = and_i(shr_i<kAt>(byte), splat_i(kMask));
      const I32 second = and_i(shr_i<kAt + kHighBits>(byte), splat_i(kMask));
      return or_i(low, or_i(shl_i<8>(first), shl_i<24>(second)));
    }
  }

  // Of all pairs of indices the words of their vectors.
  static CANDOR_INLINE void look_up(const I32* indices, I32* words) {
    constexpr int kMask = (kGrid.n_words() - 1) * 0x10001;
#pragma GCC unroll 4
    for (int p = 0; p < kPairsOf32; ++p) {
      words[p] = kGrid.shift_group > 0 ? and_i(indices[p], splat_i(kMask)) : indices[p];
    }
    look_up_pairs<kGrid.n_words(), kPairsOf32>(kGrid.words, words);
  }

  // IQ1's shift as bit 2 of each byte. at: of its vector's index.
  template <int at>
  static CANDOR_INLINE I32 shift_bits(I32 index) {
    return mul_i(and_i(shr_i<at>(index), splat_i(1)), splat_i(0x04040404));
  }

  // Field s of each byte of the words: of weights 2 s and 2 s + 1 of the one vector, and of the other.
  template <int s>
  static CANDOR_INLINE I32 field(I32 words) {
    constexpr int kBits = 16 / kGrid.span;
    return and_i(shr_i<kBits * s>(words), splat_i(((1 << kBits) - 1) * 0x01010101));
  }
  // Four weights of the first vector, or of the second, from two fields.
  template <bool is_second>
  static CANDOR_INLINE I32 quad(I32 low, I32 high) {
    if constexpr (is_second) return or_i(shr_i<16>(low), and_i(high, splat_i(static_cast<int>(0xffff0000u))));
    return or_i(and_i(low, splat_i(0xffff)), shl_i<16>(high));
  }

  // Group g of the eight of 32 k.
  template <int g>
  static CANDOR_INLINE void store_group(I32 quad, const uint8_t* signs, uint8_t (*codes)[64]) {
    static constexpr Values kValues = values();
    U8 code = as_bytes(quad);
    if constexpr (kGrid.sign_bits > 0) code = or_u(code, mask_u<8>(move_bits<g, 3>(load_u(signs))));
    store_u(codes[g], lookup(kValues.bytes, code));
  }

  // What pair p of 32 k means: 16 of them where a vector has 8.
  template <int p>
  static CANDOR_INLINE void store_pair(I32 index, I32 words, const uint8_t* signs, uint8_t (*codes)[64]) {
    const I32 f0 = field<0>(words);
    const I32 f1 = field<1>(words);
    if constexpr (kGrid.span == 4) {
      store_group<2 * p>(quad<false>(f0, f1), signs, codes);
      store_group<2 * p + 1>(quad<true>(f0, f1), signs, codes);
    } else {
      const I32 f2 = field<2>(words);
      const I32 f3 = field<3>(words);
      I32 first = splat_i(0);
      I32 second = splat_i(0);
      if constexpr (kGrid.shift_group > 0) {
        first = shift_bits<kGrid.word_bits()>(index);
        second = shift_bits<16 + kGrid.word_bits()>(index);
      }
      store_group<4 * p>(or_i(quad<false>(f0, f1), first), signs, codes);
      store_group<4 * p + 1>(or_i(quad<false>(f2, f3), first), signs, codes);
      store_group<4 * p + 2>(or_i(quad<true>(f0, f1), second), signs, codes);
      store_group<4 * p + 3>(or_i(quad<true>(f2, f3), second), signs, codes);
    }
  }

  template <bool is_odd, int... p>
  static CANDOR_INLINE void unpack_32(const uint8_t* src, int b, uint8_t (*codes)[64],
                                      std::integer_sequence<int, p...>) {
    const I32 indices[] = {index_pair<is_odd, p>(src, b)...};
    I32 words[sizeof...(p)];
    look_up(indices, words);
    const uint8_t* signs = src + grid_signs_at(kGrid) + 64 * b;
    (store_pair<p>(indices[p], words[p], signs, codes), ...);
  }

  template <class Prefetcher>
  static void unpack_grid(const uint8_t* src, Unit& dst, Prefetcher& prefetcher) {
    constexpr float kFraction = 1.0f / static_cast<float>(1 << kGrid.halvings);
    store(dst.d[0], mul(load_f16(src), splat(kFraction)));
    unpack_scales(src + grid_scales_at(kGrid), dst);
    for (int b = 0; b < kEights; b += 2) {
      unpack_32<false>(src, b, dst.codes + 8 * b, Pairs{});
      prefetcher.step();
      unpack_32<true>(src, b + 1, dst.codes + 8 * b + 8, Pairs{});
      prefetcher.step();
    }
  }
};
