// Products with weights whose codes name vectors of a grid: a unit's indices become bytes and sub-scales, once for all
// rows that share it, and then it is multiplied as any super-block without minima whose weights need 8 bits. That part
// is compiled once for all grids, as if for IQ2_S.

template <DType dtype>
struct GridProduct : BlockProduct<DType::kIQ2_S> {
  static constexpr GridFormat kGrid = grid_format_of(dtype);
  static constexpr int kReadTiles = 0;
  static constexpr int kIndices = 32 / kGrid.span;  // of 32 k
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

  // Index i of 32 k's number b. is_odd: whether b is.
  template <bool is_odd, int i>
  static CANDOR_INLINE I32 index(const uint8_t* src, int b) {
    const int at = kIndices * b + i;
    const I32 low = widen_u8(src + grid_indices_at(kGrid) + 16 * at);
    if constexpr (kHighBits == 0) {
      return low;
    } else {
      constexpr int kAt = ((is_odd ? kIndices : 0) + i) * kHighBits % 8;
      const I32 byte = widen_u8(src + grid_high_bits_at(kGrid) + 16 * (at * kHighBits / 8));
      return or_i(low, shl_i<8>(and_i(shr_i<kAt>(byte), splat_i((1 << kHighBits) - 1))));
    }
  }

  // The codes of 8 k, q of the four of 32 k, as nibbles.
  template <bool is_odd, int q>
  static CANDOR_INLINE I32 word(const uint8_t* src, int b) {
    if constexpr (kGrid.span == 8) {
      return gather(kGrid.words, index<is_odd, q>(src, b));
    } else {
      return or_i(gather(kGrid.words, index<is_odd, 2 * q>(src, b)),
                  shl_i<4>(gather(kGrid.words, index<is_odd, 2 * q + 1>(src, b))));
    }
  }

  // Group g of the eight of 32 k. nibbles: of its 8 k.
  template <int g>
  static CANDOR_INLINE void store_group(U8 nibbles, const uint8_t* signs, uint8_t* codes) {
    static constexpr Values kValues = values();
    U8 code = move_bits<4 * (g % 2), 0>(nibbles);
    if constexpr (kGrid.sign_bits > 0) {
      code = merge_low<3>(code, mask_u<8>(move_bits<g, 3>(load_u(signs))));
    } else {
      code = mask_u<15>(code);
    }
    store_u(codes, lookup(kValues.bytes, code));
  }

  template <bool is_odd>
  static CANDOR_INLINE void unpack_32(const uint8_t* src, int b, uint8_t (*codes)[64]) {
    alignas(64) int32_t words[4][16];
    store_i(words[0], word<is_odd, 0>(src, b));
    store_i(words[1], word<is_odd, 1>(src, b));
    store_i(words[2], word<is_odd, 2>(src, b));
    store_i(words[3], word<is_odd, 3>(src, b));
    const uint8_t* signs = src + grid_signs_at(kGrid) + 64 * b;
    const auto nibbles = [&](int q) { return load_u(reinterpret_cast<const uint8_t*>(words[q])); };
    store_group<0>(nibbles(0), signs, codes[0]);
    store_group<1>(nibbles(0), signs, codes[1]);
    store_group<2>(nibbles(1), signs, codes[2]);
    store_group<3>(nibbles(1), signs, codes[3]);
    store_group<4>(nibbles(2), signs, codes[4]);
    store_group<5>(nibbles(2), signs, codes[5]);
    store_group<6>(nibbles(3), signs, codes[6]);
    store_group<7>(nibbles(3), signs, codes[7]);
  }

  template <class Prefetcher>
  static void unpack_grid(const uint8_t* src, Unit& dst, Prefetcher& prefetcher) {
    constexpr float kFraction = 1.0f / static_cast<float>(1 << kGrid.halvings);
    store(dst.d[0], mul(load_f16(src), splat(kFraction)));
    unpack_scales(src + grid_scales_at(kGrid), dst);
    for (int b = 0; b < kEights; b += 2) {
      unpack_32<false>(src, b, dst.codes + 8 * b);
      prefetcher.step();
      unpack_32<true>(src, b + 1, dst.codes + 8 * b + 8);
      prefetcher.step();
    }
  }
};
