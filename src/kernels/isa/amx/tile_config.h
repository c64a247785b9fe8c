#pragma once
// The shapes of the eight tile registers: the 64 bytes that LDTILECFG reads (palette 1: at most 16 rows of 64 bytes).
// A product of tiles asks that a's bytes a row are four times b's rows, and that c has a's rows and b's bytes a row.

#include <cstdint>

namespace candor::kernels {

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t n_rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

inline constexpr int kTileRows16 = 16;  // rows of an operand tile, and 32-bit columns of a sum

constexpr TileConfig make_tile_config(int first_short_a, int n_short_a, int first_short_b, int n_short_b) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    const bool is_short_a = t >= first_short_a && t < first_short_a + n_short_a;
    const bool is_short_b = t >= first_short_b && t < first_short_b + n_short_b;
    config.row_bytes[t] = is_short_a ? 32 : 64;
    config.n_rows[t] = is_short_b ? 8 : 16;
  }
  return config;
}

// Sums in 0 to 3. Operands of 64 bytes of k: a in 4, 5; b in 6, 7.
inline constexpr TileConfig kDeepTiles = make_tile_config(0, 0, 0, 0);
// Operands of 32 bytes of k: a in 4, 5; b in 6, 7.
inline constexpr TileConfig kShallowTiles = make_tile_config(4, 2, 6, 2);
// Operands of 64 bytes of k: a in 4, b in 5; of 32: a in 6, b in 7.
inline constexpr TileConfig kMixedTiles = make_tile_config(6, 1, 7, 1);

}  // namespace candor::kernels
