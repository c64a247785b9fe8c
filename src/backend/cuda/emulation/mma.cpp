#include "backend/cuda/emulation/mma.h"

#include <cstring>

namespace candor::backend::cuda::emulation {

void multiply_s8(const std::array<MmaFragments, 32>& lanes) {
  alignas(64) int8_t a[16][32];
  alignas(64) int8_t b[8][32];  // by columns
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t group = lane / 4;
    const uint32_t k = lane % 4 * 4;
    std::memcpy(&a[group][k], &lanes[lane].a[0], 4);
    std::memcpy(&a[group + 8][k], &lanes[lane].a[1], 4);
    std::memcpy(&a[group][k + 16], &lanes[lane].a[2], 4);
    std::memcpy(&a[group + 8][k + 16], &lanes[lane].a[3], 4);
    std::memcpy(&b[group][k], &lanes[lane].b[0], 4);
    std::memcpy(&b[group][k + 16], &lanes[lane].b[1], 4);
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
