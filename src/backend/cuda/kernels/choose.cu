// Rows of logits read for a choice: the greatest, a bound for the best, weights, and the best in order. Sums of weights
// are integers, so that blocks may add them in any order. Orders: docs/numerics.md, "Choosing the token".

#include "backend/cuda/kernels/choose_args.h"
#include "backend/cuda/kernels/choose_rows.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda {

using namespace choosing;

namespace {

// The best of a warp's threads; every lane has it.
CANDOR_DEVICE void find_best(float& logit, int32_t& token) {
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    const float other = shuffle_xor(logit, mask);
    const int32_t other_token = shuffle_xor(token, mask);
    const bool is_better = precedes(other, other_token, logit, token);
    logit = is_better ? other : logit;
    token = is_better ? other_token : token;
  }
}

// Of a block's warps, in shared memory from `begin` on: [n_warps] of each.
struct WarpScans {
  Shared<float> greatest;
  Shared<int32_t> token;
  Shared<uint32_t> n_broken;
};

CANDOR_DEVICE WarpScans warp_scans(size_t begin) {
  constexpr size_t kMostWarps = 32;
  return {shared<float>(begin), shared<int32_t>(begin + 4 * kMostWarps), shared<uint32_t>(begin + 8 * kMostWarps)};
}

// The block's, at its thread 0.
CANDOR_DEVICE SegmentScan join_scans(const SegmentScan& own, const WarpScans& warps) {
  float greatest = own.greatest;
  int32_t token = own.token;
  find_best(greatest, token);
  const uint32_t broken = ballot(!own.is_valid);
  if (lane() == 0) {
    warps.greatest[warp()] = greatest;
    warps.token[warp()] = token;
    warps.n_broken[warp()] = broken;
  }
  sync_block();
  SegmentScan all{greatest, token, broken == 0};
  for (uint32_t w = 1; thread() == 0 && w < n_warps(); ++w) {
    const float other = warps.greatest[w];
    const int32_t other_token = warps.token[w];
    const uint32_t other_broken = warps.n_broken[w];
    if (precedes(other, other_token, all.greatest, all.token)) {
      all.greatest = other;
      all.token = other_token;
    }
    all.is_valid = all.is_valid && other_broken == 0;
  }
  return all;
}

// Ascending as floats are; no NaN.
CANDOR_DEVICE uint32_t key_of(float x) {
  const uint32_t bits = bits_of(x);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
CANDOR_DEVICE float of_key(uint32_t key) {
  return float_of((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}

// Of the block; every thread has it. Counts: [n_warps] in shared memory from `begin` on.
CANDOR_DEVICE uint32_t sum_of_block(uint32_t n, size_t begin) {
  const auto counts = shared<uint32_t>(begin);
  for (uint32_t mask = 16; mask > 0; mask /= 2) n += shuffle_xor(n, mask);
  if (lane() == 0) counts[warp()] = n;
  sync_block();
  uint32_t sum = 0;
  for (uint32_t w = 0; w < n_warps(); ++w) sum += counts[w];
  sync_block();
  return sum;
}

// The n-th greatest of the maxima; -inf where there are not so many above it.
CANDOR_DEVICE float nth_greatest(const float* maxima, int32_t n_maxima, uint32_t n) {
  uint32_t key = 0;
  for (uint32_t bit = 0x80000000u; bit > 0; bit /= 2) {
    const uint32_t higher = key | bit;
    uint32_t n_reaching = 0;
    for (auto i = static_cast<int32_t>(thread()); i < n_maxima; i += static_cast<int32_t>(n_threads())) {
      n_reaching += key_of(maxima[i]) >= higher ? 1u : 0u;
    }
    const uint32_t n_all = sum_of_block(n_reaching, 0);
    if (n_all >= n) key = higher;
    if (n_all == n) break;
  }
  return key <= key_of(-infinity()) ? -infinity() : of_key(key);
}

}  // namespace

// The greatest of each chunk and of the segment, and whether all are numbers.
CANDOR_KERNEL(scan_logits, ChooseArgs) {
  const RowQueryArgs query = args.queries[block_y()];
  const Segment segment = segment_of(query);
  if (segment.n <= 0) return;
  SegmentScan own{-infinity(), INT32_MAX, load(query, segment)};
  for (auto i = static_cast<int32_t>(thread()); i < segment.n; i += static_cast<int32_t>(n_threads())) {
    const float x = segment.values[static_cast<size_t>(i)];
    own.is_valid = own.is_valid && is_valid_logit(x);
    if (!(x > own.greatest)) continue;
    own.greatest = x;
    own.token = segment.begin + i;
  }
  float most = own.greatest;
  for (uint32_t mask = 1; mask < static_cast<uint32_t>(args.chunk_lanes); mask *= 2) {
    const float other = shuffle_xor(most, mask);
    most = other > most ? other : most;
  }
  const auto lanes = static_cast<uint32_t>(args.chunk_lanes);
  const uint32_t n_chunks = n_threads() / lanes;
  const auto place = static_cast<int64_t>(block_y()) * args.n_segments + block_x();
  if (thread() % lanes == 0) args.maxima[place * n_chunks + thread() / lanes] = most;
  const SegmentScan all = join_scans(own, warp_scans(sizeof(float) * kSegment));
  if (thread() == 0) args.scans[place] = all;
}

// The greatest of the row, and a logit that n_best of it reach. A block a query.
CANDOR_KERNEL(bound_logits, ChooseArgs) {
  const RowQueryArgs query = args.queries[block_x()];
  const int32_t n_segments = segments_of(query);
  const auto first = static_cast<int64_t>(block_x()) * args.n_segments;
  SegmentScan own{-infinity(), INT32_MAX, true};
  for (auto i = static_cast<int32_t>(thread()); i < n_segments; i += static_cast<int32_t>(n_threads())) {
    const SegmentScan scan = args.scans[first + i];
    own.is_valid = own.is_valid && scan.is_valid;
    if (!precedes(scan.greatest, scan.token, own.greatest, own.token)) continue;
    own.greatest = scan.greatest;
    own.token = scan.token;
  }
  const SegmentScan all = join_scans(own, warp_scans(sizeof(uint32_t) * 32));
  float bound = gathers(query) ? -infinity() : infinity();
  if (gathers(query) && query.n > kMostGathered) {
    const int32_t n_chunks = static_cast<int32_t>(kSegmentThreads) / args.chunk_lanes;
    const int32_t n_maxima = n_segments * n_chunks;
    const auto n = static_cast<uint32_t>(least_of(query.n_best, n_maxima / 2));
    bound = nth_greatest(args.maxima + first * n_chunks, n_maxima, n);
  }
  if (thread() == 0) {
    args.states[block_x()] = {all.greatest, bound, all.token, 0, all.is_valid && all.greatest > -infinity()};
  }
}

// The weights of a segment, and which of its logits reach the bound.
CANDOR_KERNEL(weigh_logits, ChooseArgs) {
  const RowQueryArgs query = args.queries[block_y()];
  const Segment segment = segment_of(query);
  RowState* state = args.states + block_y();
  if (segment.n <= 0 || !state->is_valid || (!gathers(query) && !query.is_weighed)) return;
  load(query, segment);
  const float greatest = state->greatest;
  const float bound = divided(query, greatest, state->bound);
  GatheredLogit* gathered = args.gathered + static_cast<int64_t>(block_y()) * kMostGathered;
  uint64_t sum = 0;
  for (auto i = static_cast<int32_t>(thread()); i < segment.n; i += static_cast<int32_t>(n_threads())) {
    const float x = segment.values[static_cast<size_t>(i)];
    const float y = divided(query, greatest, x);
    if (query.is_weighed) sum += weight_of(query, greatest, y);
    if (!(y >= bound) || !(y > -infinity())) continue;
    const uint32_t place = atomic_add(&state->n_gathered, 1u);
    if (place < static_cast<uint32_t>(kMostGathered)) {
      gathered[place] = {segment.begin + i, y, query.logits[segment.begin + i]};
    }
  }
  const uint64_t total = sum64_of_block(sum, sizeof(float) * kSegment);
  if (thread() == 0) args.totals[static_cast<int64_t>(block_y()) * args.n_segments + block_x()] = total;
}

// What was gathered, in order: each finds its rank by itself. A block a query.
CANDOR_KERNEL(rank_logits, ChooseArgs) {
  constexpr size_t kTokensAt = sizeof(float) * kMostGathered;
  constexpr size_t kSumsAt = kTokensAt + sizeof(int32_t) * kMostGathered;
  const RowQueryArgs query = args.queries[block_x()];
  const RowState state = args.states[block_x()];
  const bool is_ranked = gathers(query) && state.n_gathered <= static_cast<uint32_t>(kMostGathered);
  const int32_t n = state.is_valid && is_ranked ? static_cast<int32_t>(state.n_gathered) : 0;
  const GatheredLogit* gathered = args.gathered + static_cast<int64_t>(block_x()) * kMostGathered;
  const auto logits = shared<float>(0);
  const auto tokens = shared<int32_t>(kTokensAt);
  share_gathered(gathered, n, logits, tokens);
  sync_block();
  GatheredLogit* best = args.best + query.best_at;
  for (auto i = static_cast<int32_t>(thread()); i < n; i += static_cast<int32_t>(n_threads())) {
    const GatheredLogit own = gathered[i];
    const int32_t rank = rank_of(own, logits, tokens, n);
    if (rank < query.n_best) best[rank] = own;
  }
  uint64_t sum = 0;
  const uint64_t* totals = args.totals + static_cast<int64_t>(block_x()) * args.n_segments;
  for (auto i = static_cast<int32_t>(thread()); query.is_weighed && i < segments_of(query);
       i += static_cast<int32_t>(n_threads())) {
    sum += totals[i];
  }
  const uint64_t total = sum64_of_block(sum, kSumsAt);
  if (thread() != 0) return;
  const bool has_one = state.is_valid && !is_ranked && !query.is_scaled;
  if (has_one) best[0] = {state.token, state.greatest, query.logits[state.token]};
  args.heads[block_x()] = {.total = total,
                           .greatest = state.greatest,
                           .asked = query.asked < 0 ? 0.0f : query.logits[query.asked],
                           .n_best = has_one ? 1 : least_of(n, query.n_best),
                           .is_valid = state.is_valid,
                           .is_whole = n > 0 && n <= query.n_best && !(state.bound > -infinity())};
}

}  // namespace candor::backend::cuda
