#pragma once
// What pages of codes are multiplied with: queries, and what tokens weigh, as integers of 16 bits under a scale.
// Included behind language.h. Order: docs/numerics.md, "Attention", "Codes".

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_block.h"
#include "backend/cuda/kernels/attend_rules.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"
#include "kernels/kv_codes.h"

namespace candor::backend::cuda::attention {

constexpr float kNoWeight = 0x1p-100f;  // less is nothing
constexpr uint32_t kInfinityBits = 0x7f800000u;
constexpr uint32_t kNanBits = 0x7fc00000u;

CANDOR_DEVICE uint32_t warp_max_bits(uint32_t x) {
  CANDOR_UNROLL
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    const uint32_t other = shuffle_xor(x, mask);
    x = other > x ? other : x;
  }
  return x;
}
CANDOR_DEVICE uint32_t pair_of(int32_t low, int32_t high) {
  return (static_cast<uint32_t>(low) & 0xffffu) | static_cast<uint32_t>(high) << 16;
}

// By all threads: n queries, zeros behind the block's; words as query_words() says.
CANDOR_DEVICE void encode_queries(const AttendRowsArgs& a, const AttendBlock& b, Shared<uint32_t> words, int32_t n) {
  const int32_t dp = padded_dim(a.head_dim);
  for (auto i = static_cast<int32_t>(warp()); i < n; i += static_cast<int32_t>(n_warps())) {
    const bool is_query = i < b.n_queries();
    const int64_t head = int64_t{row_of(b, i)} * a.n_heads + b.first_head + i % b.n_heads;
    for (int32_t d0 = 0; d0 < dp; d0 += kBlockDims) {
      const int32_t d = d0 + static_cast<int32_t>(lane());
      const float x = is_query && d < a.head_dim ? mul_rn(a.q[head * a.head_dim + d], a.scale) : 0.0f;
      const uint32_t most = warp_max_bits(bits_of(x) & 0x7fffffffu);
      const bool is_number = most < kInfinityBits;
      const bool has_codes = is_number && float_of(most) >= kNoWeight;
      const float inverse = has_codes ? div_rn(kernels::kMostWord, float_of(most)) : 0.0f;
      const int32_t code = has_codes ? to_int_rn(mul_rn(x, inverse)) : 0;
      const int32_t next = shuffle_xor(code, 1);
      if (lane() % 2 == 0 && d < dp) words[static_cast<size_t>(d / 2 * n + i)] = pair_of(code, next);
      if (lane() > 0) continue;
      const float scale = has_codes ? div_rn(float_of(most), kernels::kMostWord) : 0.0f;
      words[static_cast<size_t>((dp / 2 + d0 / kBlockDims) * n + i)] = is_number ? bits_of(scale) : kNanBits;
    }
  }
}

// What the scales of a lane's 4 tokens are to the largest of those of the tile that a query sees, times kMostWord; 0 of
// others.
struct TokenShares {
  float shares[4];
  float largest;  // NaN where it is no number

  CANDOR_DEVICE void set(const float (&scales)[4], const TokenRange& seen, int32_t first) {
    uint32_t most = 0;
    CANDOR_UNROLL
    for (int32_t j = 0; j < 4; ++j) {
      shares[j] = seen.holds(first + j) ? scales[j] : 0.0f;
      const uint32_t bits = bits_of(shares[j]) & 0x7fffffffu;
      most = bits > most ? bits : most;
    }
    most = warp_max_bits(most);
    largest = float_of(most < kInfinityBits ? most : kNanBits);
    const bool has_share = largest > 0.0f;
    const float inverse = has_share ? div_rn(kernels::kMostWord, largest) : 0.0f;
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) shares[j] = has_share ? mul_rn(shares[j], inverse) : 0.0f;
  }
};

// A query's probabilities of the lane's tokens over the tile's largest, which is returned.
CANDOR_DEVICE float normalize_weights(float (&p)[4]) {
  float most = 0.0f;
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) most = elementary::max(p[j], most);
  const float largest = warp_max(most);
  const bool is_none = largest < kNoWeight;
  const float inverse = is_none ? 0.0f : div_rn(1.0f, largest);
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) p[j] = elementary::max(mul_rn(p[j], inverse), 0.0f);
  return is_none ? 0.0f : largest;
}

// Words of query i of n in a tile and block, whose place begins at `at` (weight_words()).
struct WeightPlace {
  Shared<uint32_t> memory;
  uint32_t at;
  uint32_t n;
  uint32_t i;

  CANDOR_DEVICE void store(const float (&p)[4], float largest, const TokenShares& tokens) const {
    CANDOR_UNROLL
    for (uint32_t j = 0; j < 4; j += 2) {
      const int32_t low = to_int_rn(mul_rn(p[j], tokens.shares[j]));
      const int32_t high = to_int_rn(mul_rn(p[j + 1], tokens.shares[j + 1]));
      memory[at + (2 * lane() + j / 2) * n + i] = pair_of(low, high);
    }
    if (lane() > 0) return;
    const float factor = mul_rn(mul_rn(largest, tokens.largest), kernels::kWordUnit);
    memory[at + kTilePairs * n + i] = factor == 0.0f ? 0x80000000u : bits_of(factor);
  }
  CANDOR_DEVICE float factor() const { return float_of(memory[at + kTilePairs * n + i]); }
};

}  // namespace candor::backend::cuda::attention
