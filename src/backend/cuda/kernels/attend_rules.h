#pragma once
// What a query of attention sees, and its steps but for products: scores, weights, and the joining of splits
// (docs/numerics.md, "Attention", steps 3 to 7). Included behind language.h.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::attention {

constexpr float kLowestScore = -1e30f;  // where the running maximum starts

// Half open. Neither end falls from one row of a tile to the next.
struct TokenRange {
  int32_t begin;
  int32_t end;
  CANDOR_DEVICE bool holds(int32_t token) const { return token >= begin && token < end; }
  CANDOR_DEVICE bool is_empty() const { return end <= begin; }
};

CANDOR_DEVICE TokenRange seen_tokens(const AttendRowsArgs& a, const RowPlace& row) {
  const int32_t p = row.position;
  TokenRange seen{0, p + 1};
  if (a.chunk_tokens > 0) {
    seen.begin = p - p % a.chunk_tokens;
  } else if (a.window_tokens > 0 && p >= a.window_tokens) {
    seen.begin = p - a.window_tokens + 1;
  }
  if (p < row.group_end) {
    const int32_t reached = p + a.ahead_tokens;
    seen.end = a.ahead_tokens > 0 && reached < row.group_end ? reached : row.group_end;
  }
  return seen;
}

// Of what `seen` covers, in units of `step` tokens.
CANDOR_DEVICE TokenRange covered(const TokenRange& seen, int32_t step) {
  return {seen.begin / step, up_to(seen.end, step)};
}

// A query: a row and a head.
struct Query {
  int32_t head;
  int32_t position;
  TokenRange seen;  // empty: there is no such query
};

CANDOR_DEVICE float adjust_score(const AttendRowsArgs& a, const Query& query, int32_t token, float score) {
  if (a.softcap != 0.0f) score = soft_cap_of(score, a.softcap);
  const int32_t distance = token - query.position;
  if (a.slopes != nullptr) {
    score = fma_rn(to_float_rn(distance < 0 ? distance : -distance), a.slopes[query.head], score);
  }
  if (a.biases != nullptr) {
    const int32_t reach = a.bias_reach;
    const int32_t kept = distance < -reach ? -reach : distance > reach ? reach : distance;
    score = add_rn(score, a.biases[int64_t{query.head} * (2 * reach + 1) + reach + kept]);
  }
  return score;
}
CANDOR_DEVICE bool adjusts_scores(const AttendRowsArgs& a) {
  return a.softcap != 0.0f || a.slopes != nullptr || a.biases != nullptr;
}

// The greatest of a warp's; NaN counts for nothing.
CANDOR_DEVICE float warp_max(float x) {
  CANDOR_UNROLL
  for (uint32_t mask = 16; mask > 0; mask /= 2) x = elementary::max(shuffle_xor(x, mask), x);
  return x;
}

// x: what arithmetic gave.
template <class Rows>
CANDOR_DEVICE float round_operand(float x) {
  return Rows::kRoundsOperands ? float_of(bf16_pair(0.0f, x)) : x;
}

template <class Rows>
CANDOR_DEVICE float weight_of(float score, float max) {
  return round_operand<Rows>(exp_capped_of(sub_rn(score, max)));
}

// A running maximum and sum of weights, and how outputs of two are joined.
struct Total {
  float max = kLowestScore;
  float sum = 0.0f;
};
struct Shares {
  float old_part;
  float new_part;
  CANDOR_DEVICE float join(float old_output, float new_output) const {
    return fma_rn(new_output, new_part, mul_rn(old_output, old_part));
  }
};
CANDOR_DEVICE Shares add_split(Total& total, float max, float sum) {
  const float new_max = total.max > max ? total.max : max;
  const Shares shares{exp_of(sub_rn(total.max, new_max)), exp_of(sub_rn(max, new_max))};
  total.max = new_max;
  total.sum = fma_rn(sum, shares.new_part, mul_rn(total.sum, shares.old_part));
  return shares;
}

// What an output is multiplied by at the end: for a sink, then for the sum.
struct Finish {
  float sink_part;
  float inverse;
  bool has_sink;
  CANDOR_DEVICE float of(float output) const { return mul_rn(has_sink ? mul_rn(output, sink_part) : output, inverse); }
};
CANDOR_DEVICE Finish finish_of(const AttendRowsArgs& a, int32_t head, const Total& total) {
  if (a.sinks == nullptr) return {1.0f, div_rn(1.0f, total.sum), false};
  const float sink = a.sinks[head];
  const float new_max = total.max > sink ? total.max : sink;
  const float old_part = exp_of(sub_rn(total.max, new_max));
  const float sum = fma_rn(total.sum, old_part, exp_of(sub_rn(sink, new_max)));
  return {old_part, div_rn(1.0f, sum), true};
}

}  // namespace candor::backend::cuda::attention
