// What the tile registers themselves compute and touch. With them, the assembly is tested; without, the emulation is
// tested against plain loops, which is what the other tests lean on.
#include <array>

#if defined(__x86_64__)

#include "kernels/isa/amx/asm_tiles.h"
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "kernels/test_support.h"

namespace candor::kernels::portable_tiles {
namespace {
// The emulation uses the vocabulary.
// clang-format off
#include "kernels/isa/portable/vocabulary.inl.h"
#include "kernels/isa/amx/emulated_tiles.inl.h"
// clang-format on
}  // namespace
}  // namespace candor::kernels::portable_tiles

namespace candor::kernels::testing {
namespace {

using portable_tiles::EmulatedTiles;

struct alignas(64) Bytes {
  std::array<uint8_t, 1024> v;
};

Bytes random_bytes(uint64_t seed) {
  SplitMix random(seed);
  Bytes bytes{};
  for (uint8_t& byte : bytes.v) byte = static_cast<uint8_t>(random.below(256));
  return bytes;
}

// bf16 of every size, zeros and denormals among them.
Bytes random_halves(uint64_t seed) {
  SplitMix random(seed);
  Bytes bytes{};
  for (size_t i = 0; i < bytes.v.size(); i += 2) {
    const uint64_t kind = random.below(8);
    const float x = kind == 0 ? 0.0f : random.normal() * (kind == 1 ? 1e-19f : kind == 2 ? 1e15f : 1.0f);
    const uint16_t half = kind == 3 ? static_cast<uint16_t>(random.below(128)) : f32_to_bf16(x);
    std::memcpy(&bytes.v[i], &half, 2);
  }
  return bytes;
}

// One product of each kind from zero sums, then once more onto them.
template <class Tiles>
std::array<Bytes, 3> products(const TileConfig& config, const Bytes& a, const Bytes& b, const Bytes& x,
                              const Bytes& y) {
  std::array<Bytes, 3> sums{};
  Tiles tiles(config);
  tiles.template load<4>(a.v.data(), 64);
  tiles.template load<6>(b.v.data(), 64);
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template zero<2>();
  for (int i = 0; i < 2; ++i) {
    tiles.template dot_signed<0, 4, 6>();
    tiles.template dot_unsigned<1, 4, 6>();
  }
  tiles.template load<5>(x.v.data(), 64);
  tiles.template load<7>(y.v.data(), 64);
  for (int i = 0; i < 2; ++i) tiles.template dot_bf16<2, 5, 7>();
  tiles.template store<0>(sums[0].v.data(), 64);
  tiles.template store<1>(sums[1].v.data(), 64);
  tiles.template store<2>(sums[2].v.data(), 64);
  return sums;
}

int32_t dot_of(const Bytes& a, const Bytes& b, int row, int column, int n, bool is_signed) {
  int32_t sum = 0;
  for (int k = 0; k < 4 * n; ++k) {
    const uint8_t raw = b.v[static_cast<size_t>(64 * (k / 4) + 4 * column + k % 4)];
    const int w = is_signed ? static_cast<int8_t>(raw) : raw;
    sum += static_cast<int8_t>(a.v[static_cast<size_t>(64 * row + k)]) * w;
  }
  return sum;
}

class tiles : public KernelTest {};

}  // namespace

TEST_F(tiles, integer_products_are_those_of_plain_loops) {
  const Bytes a = random_bytes(1);
  const Bytes b = random_bytes(2);
  for (const int n : {16, 8}) {
    const auto sums = products<EmulatedTiles>(n == 16 ? kDeepTiles : kShallowTiles, a, b, a, b);
    for (int i = 0; i < 256; ++i) {
      for (const bool is_signed : {true, false}) {
        int32_t found = 0;
        std::memcpy(&found, &sums[is_signed ? 0 : 1].v[static_cast<size_t>(4 * i)], 4);
        ASSERT_EQ(found, 2 * dot_of(a, b, i / 16, i % 16, n, is_signed)) << n << " element " << i;
      }
    }
  }
}

TEST_F(tiles, the_processor_computes_what_the_emulation_does) {
  if (amx_table() == nullptr) GTEST_SKIP() << "no tile registers here";
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Bytes a = random_bytes(4 * seed);
    const Bytes b = random_bytes(4 * seed + 1);
    const Bytes x = random_halves(4 * seed + 2);
    const Bytes y = random_halves(4 * seed + 3);
    const TileConfig& config = seed % 2 == 0 ? kDeepTiles : kShallowTiles;
    const auto expected = products<EmulatedTiles>(config, a, b, x, y);
    const auto found = products<AsmTiles>(config, a, b, x, y);
    for (size_t i = 0; i < 3; ++i) ASSERT_EQ(found[i].v, expected[i].v) << "product " << i << " seed " << seed;
  }
}

// A compiler that is not told what the assembly reads drops or moves these stores at -O3.
template <class Tiles>
int64_t sum_of_rewritten_buffer(int n_rounds) {
  alignas(64) int32_t buffer[256];
  alignas(64) int32_t copy[256];
  Tiles tiles(kDeepTiles);
  int64_t sum = 0;
  for (int round = 0; round < n_rounds; ++round) {
    for (int i = 0; i < 256; ++i) buffer[i] = round * 256 + i;
    tiles.template load<0>(buffer, 64);
    for (int i = 0; i < 256; ++i) buffer[i] = -1;
    tiles.template store<0>(copy, 64);
    for (int i = 0; i < 256; ++i) sum += copy[i];
  }
  return sum;
}

TEST_F(tiles, a_stack_buffer_rewritten_in_a_loop_is_read_each_time) {
  constexpr int64_t kRounds = 100;
  constexpr int64_t kSum = (kRounds * 256) * (kRounds * 256 - 1) / 2;
  EXPECT_EQ(sum_of_rewritten_buffer<EmulatedTiles>(kRounds), kSum);
  if (amx_table() == nullptr) GTEST_SKIP() << "no tile registers here: the assembly itself was not run";
  EXPECT_EQ(sum_of_rewritten_buffer<AsmTiles>(kRounds), kSum);
}

}  // namespace candor::kernels::testing

#endif
