// look_up_pairs() for vocabularies whose registers hold no table: word by word in the first-level cache. All indices
// are stored before the first is read, so that no load waits for a store.

template <int n, int m>
CANDOR_INLINE void look_up_pairs(const uint16_t* table, I32* a) {
  alignas(64) uint16_t halves[m][32];
#pragma GCC unroll 4
  for (int i = 0; i < m; ++i) store_i(reinterpret_cast<int32_t*>(halves[i]), a[i]);
#pragma GCC unroll 4
  for (int i = 0; i < m; ++i) {
#pragma GCC unroll 32
    for (int j = 0; j < 32; ++j) halves[i][j] = table[halves[i][j]];
  }
#pragma GCC unroll 4
  for (int i = 0; i < m; ++i) a[i] = load_i(reinterpret_cast<const int32_t*>(halves[i]));
}
