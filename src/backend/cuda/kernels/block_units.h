#pragma once
// Where the parts of a unit of 32-blocks lie (kernels/packed_format.h), and a block's scales for a lane's two outputs.

#include "backend/cuda/kernels/block_weights.h"

namespace candor::backend::cuda {

template <class Block>
struct BlockUnit {
  static constexpr PackedFormat kPacked = Block::kPacked;
  static constexpr bool kHasMin = kPacked.has_min;
  static constexpr bool kHasExponents = kernels::has_exponents(kPacked);
  static constexpr int kHeaderOfBlock = static_cast<int>(kernels::unit_header_bytes(kPacked, 32));
  static constexpr int kScaleBytes = kPanelRows * kPacked.scale_bytes;  // of a block
  static constexpr int64_t kBytes = static_cast<int64_t>(kernels::unit_bytes(kPacked, kUnit));
};

template <class Block>
struct BlockScales {
  using Unit = BlockUnit<Block>;

  uint32_t d_pair = 0;
  uint32_t m_pair = 0;

  // Of block b of the unit's n.
  CANDOR_DEVICE void load(const uint8_t* unit, int n, int b) {
    const uint8_t* at = unit + Unit::kScaleBytes * b;
    d_pair = Unit::kHasExponents ? load2(at + 2 * lane_group()) : load4(at + 4 * lane_group());
    if constexpr (Unit::kHasMin) m_pair = load4(at + Unit::kScaleBytes * n + 4 * lane_group());
  }
  CANDOR_DEVICE float d(int output) const {
    if constexpr (!Unit::kHasExponents) return half_of(d_pair, output);
    // 2^(e - 128), zero for e < 2.
    const uint32_t e = byte_of(d_pair, output);
    return float_of(e == 0 ? 0 : (e - 1) << 23);
  }
  CANDOR_DEVICE float min(int output) const { return half_of(m_pair, output); }
};

}  // namespace candor::backend::cuda
