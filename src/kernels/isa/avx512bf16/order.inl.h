// Whether this processor's VDPBF16PS is the two fmas that products.inl.h counts on, for numbers from denormals on: its
// maker may have another order. REQUIRES: the float mode of threads that compute.

struct NearNumbers {
  uint32_t state = 0x9e3779b9u;

  // Two bf16 of either sign with exponents in [8 group, 8 group + 7].
  int32_t next(int group) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return static_cast<int32_t>((state & 0x83ff83ffu) + static_cast<uint32_t>(group) * 0x04000400u);
  }
};

inline bool adds_in_order() {
  constexpr int kGroups = 20;
  constexpr int kTrials = 200;
  NearNumbers numbers;
  for (int i = 0; i < kGroups * kTrials; ++i) {
    const int group = i % kGroups;
    const int of_product = 2 * group < 15 ? 0 : 2 * group - 15;
    int32_t words[3][16];
    for (int lane = 0; lane < 16; ++lane) {
      words[0][lane] = numbers.next(of_product);
      words[1][lane] = numbers.next(group);
      words[2][lane] = numbers.next(group);
    }
    const F32 acc = bits_to_f32(load_i(words[0]));
    const I32 w = load_i(words[1]);
    const I32 x = load_i(words[2]);
    const F32 expected = fma(even_bf16(w), even_bf16(x), fma(odd_bf16(w), odd_bf16(x), acc));
    if (_mm512_cmpneq_epi32_mask(f32_to_bits(expected), f32_to_bits(dot_pairs(acc, w, x))) != 0) return false;
  }
  return true;
}
