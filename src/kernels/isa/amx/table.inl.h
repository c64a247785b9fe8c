// The table of functions for AMX: products and attention of many rows on tile registers, the rest as AVX-512 with VNNI
// does it. Tiles: AsmTiles, or EmulatedTiles in tests.

// Whether so many rows are quicker on tiles.
inline bool takes_tiles(const MatmulArgs& m) {
  switch (family_of(m.shape.dtype)) {
    case KernelFamily::kFloats:  // of fewer k, bf16's last tile would add other zeros
      return m.shape.dtype == DType::kBF16 && m.n_rows >= kTileMinRowsBf16 && m.shape.n_in % 32 == 0;
    case KernelFamily::kBlocks:
      return m.n_rows >= kTileMinRowsBlocks;
    case KernelFamily::kAffineSuperBlocks:
    case KernelFamily::kSymmetricSuperBlocks:
      return m.n_rows >= (m.shape.dtype == DType::kQ6_K ? kTileMinRowsQ6K : kTileMinRows);
    case KernelFamily::kScaledRows:
      return m.n_rows >= kTileMinRows;
    case KernelFamily::kFloatBlocks:
      return m.n_rows >= kTileMinRowsBf16;
    case KernelFamily::kGrids:  // most of the time goes into their vectors
      return false;
  }
  return false;
}

template <class Tiles>
inline void multiply(const MatmulArgs& m) {
  if (!takes_tiles(m)) return avx512vnni_table()->matmul(m);
  switch (family_of(m.shape.dtype)) {
    case KernelFamily::kFloats:
      return multiply_chunks<Tiles, HalfWalk<Tiles>>(m);
    case KernelFamily::kBlocks:
      return multiply_blocks(m);
    case KernelFamily::kAffineSuperBlocks:
      return multiply_affine_super_blocks(m);
    case KernelFamily::kSymmetricSuperBlocks:
      return multiply_symmetric_super_blocks(m);
    case KernelFamily::kScaledRows:
      return multiply_chunks<Tiles, ScaledWalk<Tiles>>(m);
    case KernelFamily::kFloatBlocks:
      if (m.shape.dtype == DType::kFP4) return multiply_chunks<Tiles, FloatBlockWalk<Tiles, Fp4Codes>>(m);
      return multiply_chunks<Tiles, FloatBlockWalk<Tiles, Fp8Codes>>(m);
    case KernelFamily::kGrids:
      break;
  }
}

template <class Tiles>
inline void attend_tiles(const AttendArgs& a, std::byte* scratch) {
  if (a.n_rows * a.n_group_heads < kTileMinQueries) return avx512vnni_table()->attend(a, scratch);
  attend<TileProducts<Tiles>>(a, scratch);
}

template <class Tiles>
inline void attend_split_tiles(const AttendArgs& a, int32_t split, std::byte* partial, std::byte* scratch) {
  if (a.n_rows * a.n_group_heads < kTileMinQueries) {
    return avx512vnni_table()->attend_split(a, split, partial, scratch);
  }
  attend_split<TileProducts<Tiles>>(a, split, partial, scratch);
}

// For kernels/limits.h: four sums, as many as hide the latency of one. Bytes of 1 are normal numbers of bf16 in pairs.
template <class Tiles, auto... dots>
inline int64_t dot_probe(int64_t n_rounds, int64_t n_k) {
  static_assert(sizeof...(dots) == 4);
  alignas(64) int8_t ones[kTileRows16 * 64];
  std::memset(ones, 1, sizeof ones);
  Tiles tiles(kDeepTiles);
  zero_sums<Tiles, 4>(tiles);
  tiles.template load<4>(ones, 64);
  tiles.template load<6>(ones, 64);
  for (int64_t i = 0; i < n_rounds; ++i) ((tiles.*dots)(), ...);
  return n_rounds * 4 * kTileRows16 * 16 * n_k * 2;
}
template <class Tiles>
inline int64_t int8_probe(int64_t n_rounds) {
  return dot_probe<Tiles, &Tiles::template dot_signed<0, 4, 6>, &Tiles::template dot_signed<1, 4, 6>,
                   &Tiles::template dot_signed<2, 4, 6>, &Tiles::template dot_signed<3, 4, 6>>(n_rounds, 64);
}
template <class Tiles>
inline int64_t bf16_probe(int64_t n_rounds) {
  return dot_probe<Tiles, &Tiles::template dot_bf16<0, 4, 6>, &Tiles::template dot_bf16<1, 4, 6>,
                   &Tiles::template dot_bf16<2, 4, 6>, &Tiles::template dot_bf16<3, 4, 6>>(n_rounds, 32);
}

// REQUIRES: avx512vnni_table() is not null.
template <class Tiles>
inline KernelTable make_tile_table(std::string_view name, std::string_view description) {
  KernelTable table = *avx512vnni_table();
  table.name = name;
  table.description = description;
  table.matmul = multiply<Tiles>;
  table.int8_probe = int8_probe<Tiles>;
  table.bf16_probe = bf16_probe<Tiles>;
  table.attend = attend_tiles<Tiles>;
  table.attend_split = attend_split_tiles<Tiles>;
  return table;
}
