#pragma once
// A block's part of a row of logits, as a query has it (choose_args.h), and sums over the block. Included behind
// language.h.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/choose_args.h"
#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::choosing {

CANDOR_DEVICE float infinity() {
  return float_of(0x7f800000u);
}

CANDOR_DEVICE bool is_valid_logit(float x) {
  return x < infinity();
}

CANDOR_DEVICE int32_t least_of(int32_t a, int32_t b) {
  return a < b ? a : b;
}

// The first of the order: the greater logit, else the lower token.
CANDOR_DEVICE bool precedes(float a, int32_t a_token, float b, int32_t b_token) {
  return a != b ? a > b : a_token < b_token;
}

CANDOR_DEVICE bool is_allowed(const RowQueryArgs& query, int32_t token) {
  return query.mask == nullptr || (query.mask[token / 32] >> (token % 32) & 1u) != 0;
}

CANDOR_DEVICE float edited_logit(const RowQueryArgs& query, float x, int32_t first) {
  for (int32_t i = first; i >= 0; i = query.edits[i].next) {
    const LogitEdit edit = query.edits[i];
    if (edit.kind == EditKind::kAdd) {
      x = add_rn(x, edit.value);
    } else if (edit.kind == EditKind::kRepeat) {
      x = x > 0.0f ? div_rn(x, edit.value) : mul_rn(x, edit.value);
    } else {
      x = -infinity();
    }
  }
  return x;
}

// The block's part of a row. After load(), a thread reads its own elements: thread() and every n_threads() behind it.
struct Segment {
  int32_t begin;
  int32_t n;
  Shared<float> values;  // masked and edited
};

CANDOR_DEVICE Segment segment_of(const RowQueryArgs& query) {
  const int32_t begin = static_cast<int32_t>(block_x()) * kSegment;
  return {begin, least_of(kSegment, query.n - begin), shared<float>(0)};
}

// Whether this thread's logits of the model are valid.
CANDOR_DEVICE bool load(const RowQueryArgs& query, const Segment& segment) {
  bool is_valid = true;
  for (auto i = static_cast<int32_t>(thread()); i < segment.n; i += static_cast<int32_t>(n_threads())) {
    const float x = query.logits[segment.begin + i];
    is_valid = is_valid && is_valid_logit(x);
    segment.values[static_cast<size_t>(i)] = is_allowed(query, segment.begin + i) ? x : -infinity();
  }
  if (query.edited == nullptr) return is_valid;
  sync_block();
  const int32_t* edits = query.first_edited + block_x();
  for (int32_t e = edits[0] + static_cast<int32_t>(thread()); e < edits[1]; e += static_cast<int32_t>(n_threads())) {
    const auto i = static_cast<size_t>(query.edited[e].token - segment.begin);
    const float x = segment.values[i];
    segment.values[i] = edited_logit(query, x, query.edited[e].first);
  }
  sync_block();
  return is_valid;
}

CANDOR_DEVICE float divided(const RowQueryArgs& query, float greatest, float x) {
  return query.is_scaled ? div_rn(sub_rn(x, greatest), query.divisor) : x;
}

CANDOR_DEVICE uint64_t shuffle64(uint64_t x, uint32_t mask) {
  const uint32_t low = shuffle_xor(static_cast<uint32_t>(x), mask);
  const uint32_t high = shuffle_xor(static_cast<uint32_t>(x >> 32), mask);
  return static_cast<uint64_t>(high) << 32 | low;
}

// At the block's thread 0. Sums: [n_warps] in shared memory from `begin` on.
CANDOR_DEVICE uint64_t sum64_of_block(uint64_t x, size_t begin) {
  const auto sums = shared<uint64_t>(begin);
  for (uint32_t mask = 16; mask > 0; mask /= 2) x += shuffle64(x, mask);
  if (lane() == 0) sums[warp()] = x;
  sync_block();
  for (uint32_t w = 1; thread() == 0 && w < n_warps(); ++w) {
    const uint64_t other = sums[w];
    x += other;
  }
  return x;
}

// By all threads: n candidates in shared memory, for rank_of(). No barrier.
CANDOR_DEVICE void share_gathered(const GatheredLogit* gathered, int32_t n, Shared<float> logits,
                                  Shared<int32_t> tokens) {
  for (auto i = static_cast<int32_t>(thread()); i < n; i += static_cast<int32_t>(n_threads())) {
    logits[static_cast<size_t>(i)] = gathered[i].logit;
    tokens[static_cast<size_t>(i)] = gathered[i].token;
  }
}

// Of one among n, all in shared memory.
CANDOR_DEVICE int32_t rank_of(const GatheredLogit& own, Shared<float> logits, Shared<int32_t> tokens, int32_t n) {
  int32_t rank = 0;
  for (int32_t i = 0; i < n; ++i) {
    const float logit = logits[static_cast<size_t>(i)];
    const int32_t token = tokens[static_cast<size_t>(i)];
    rank += precedes(logit, token, own.logit, own.token) ? 1 : 0;
  }
  return rank;
}

// Whether more than the greatest is wanted of the order. A division may make equals of unequal logits.
CANDOR_DEVICE bool gathers(const RowQueryArgs& query) {
  return query.n_best > 1 || query.is_scaled;
}

CANDOR_DEVICE int32_t segments_of(const RowQueryArgs& query) {
  return (query.n + kSegment - 1) / kSegment;
}

// Of a candidate: e^(logit - greatest logit) in units of 2^-40. y: divided.
CANDOR_DEVICE uint64_t weight_of(const RowQueryArgs& query, float greatest, float y) {
  const float shift = query.is_scaled ? 0.0f : greatest;
  return to_uint64_rn(mul_rn(exp_of(sub_rn(y, shift)), 0x1p40f));
}

}  // namespace candor::backend::cuda::choosing
