#include "backend/cuda/emulation/mma.h"

namespace candor::backend::cuda::emulation {

namespace {

void widen(uint32_t word, int16_t* bytes) {
  for (uint32_t i = 0; i < 4; ++i) bytes[i] = static_cast<int8_t>(word >> 8 * i);
}

}  // namespace

void multiply_s8(const std::array<MmaFragments, 32>& lanes) {
  // As 16 bits, in which compilers know the sum of products.
  int16_t a[16][32];
  int16_t b[8][32];  // by columns
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t group = lane / 4;
    const uint32_t k = lane % 4 * 4;
    widen(lanes[lane].a[0], &a[group][k]);
    widen(lanes[lane].a[1], &a[group + 8][k]);
    widen(lanes[lane].a[2], &a[group][k + 16]);
    widen(lanes[lane].a[3], &a[group + 8][k + 16]);
    widen(lanes[lane].b[0], &b[group][k]);
    widen(lanes[lane].b[1], &b[group][k + 16]);
  }
  int32_t sums[16][8];
  for (uint32_t row = 0; row < 16; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      int32_t sum = 0;
      for (uint32_t k = 0; k < 32; ++k) sum += int32_t{a[row][k]} * int32_t{b[column][k]};
      sums[row][column] = sum;
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t column = lane % 4 * 2;
    for (uint32_t i = 0; i < 4; ++i) {
      const auto sum = static_cast<uint32_t>(sums[lane / 4 + i / 2 * 8][column + i % 2]);
      int32_t& d = lanes[lane].d[i];
      d = static_cast<int32_t>(static_cast<uint32_t>(d) + sum);
    }
  }
}

}  // namespace candor::backend::cuda::emulation
