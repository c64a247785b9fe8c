// The candidate with which the sum of weights, in order, first exceeds a target, where it is not among the best: the
// sums of buckets by distance from the greatest, then one bucket in order.

#include "backend/cuda/kernels/choose_args.h"
#include "backend/cuda/kernels/choose_rows.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda {

using namespace choosing;

namespace {

constexpr float kReach = 29.0f;  // what lies lower has no weight

// A greater logit is never in a later one.
CANDOR_DEVICE int32_t bucket_of(const RowQueryArgs& query, float greatest, float y) {
  constexpr float kPerUnit = static_cast<float>(kBuckets) / kReach;
  const float distance = sub_rn(query.is_scaled ? 0.0f : greatest, y);
  return least_of(to_int_rn(mul_rn(distance, kPerUnit)), kBuckets - 1);
}

}  // namespace

CANDOR_KERNEL(bucket_weights, ReachArgs) {
  const RowQueryArgs query = *args.query;
  const Segment segment = segment_of(query);
  if (segment.n <= 0) return;
  load(query, segment);
  for (auto i = static_cast<int32_t>(thread()); i < segment.n; i += static_cast<int32_t>(n_threads())) {
    const float x = segment.values[static_cast<size_t>(i)];
    const float y = divided(query, args.greatest, x);
    const uint64_t weight = weight_of(query, args.greatest, y);
    if (weight > 0) atomic_add(args.sums + bucket_of(query, args.greatest, y), weight);
  }
}

// One block: each thread sums some buckets, the first looks through these sums, then through the buckets of one.
CANDOR_KERNEL(find_bucket, ReachArgs) {
  const auto parts = shared<uint64_t>(0);
  const auto n = static_cast<uint32_t>(kBuckets) / n_threads();
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; ++i) sum += args.sums[thread() * n + i];
  parts[thread()] = sum;
  sync_block();
  if (thread() != 0) return;
  uint64_t before = 0;
  uint32_t part = 0;
  for (; part + 1 < n_threads(); ++part) {
    const uint64_t more = parts[part];
    if (before + more > args.target) break;
    before += more;
  }
  uint32_t bucket = part * n;
  while (bucket + 1 < static_cast<uint32_t>(kBuckets) && before + args.sums[bucket] <= args.target) {
    before += args.sums[bucket++];
  }
  *args.state = {before, static_cast<int32_t>(bucket), 0};
}

CANDOR_KERNEL(gather_bucket, ReachArgs) {
  const RowQueryArgs query = *args.query;
  const Segment segment = segment_of(query);
  if (segment.n <= 0) return;
  load(query, segment);
  const int32_t bucket = args.state->bucket;
  for (auto i = static_cast<int32_t>(thread()); i < segment.n; i += static_cast<int32_t>(n_threads())) {
    const float x = segment.values[static_cast<size_t>(i)];
    const float y = divided(query, args.greatest, x);
    if (weight_of(query, args.greatest, y) == 0 || bucket_of(query, args.greatest, y) != bucket) continue;
    const uint32_t place = atomic_add(&args.state->n_gathered, 1u);
    if (place < static_cast<uint32_t>(kMostGathered)) {
      args.gathered[place] = {segment.begin + i, y, query.logits[segment.begin + i]};
    }
  }
}

// One block: each finds its rank, then the first thread adds weights in order.
CANDOR_KERNEL(reach_weight, ReachArgs) {
  constexpr size_t kTokensAt = sizeof(float) * kMostGathered;
  constexpr size_t kPlacesAt = kTokensAt + sizeof(int32_t) * kMostGathered;
  const RowQueryArgs query = *args.query;
  const ReachState state = *args.state;
  const bool is_whole = state.n_gathered <= static_cast<uint32_t>(kMostGathered);
  const int32_t n = is_whole ? static_cast<int32_t>(state.n_gathered) : 0;
  const auto logits = shared<float>(0);
  const auto tokens = shared<int32_t>(kTokensAt);
  const auto places = shared<int32_t>(kPlacesAt);  // by rank
  share_gathered(args.gathered, n, logits, tokens);
  sync_block();
  for (auto i = static_cast<int32_t>(thread()); i < n; i += static_cast<int32_t>(n_threads())) {
    places[static_cast<size_t>(rank_of(args.gathered[i], logits, tokens, n))] = i;
  }
  sync_block();
  if (thread() != 0) return;
  Reached reached{.weight = state.weight_before};
  for (int32_t rank = 0; rank < n && !reached.is_known; ++rank) {
    const int32_t place = places[static_cast<size_t>(rank)];
    reached.last = args.gathered[place];
    reached.weight += weight_of(query, args.greatest, reached.last.logit);
    reached.is_known = reached.weight > args.target;
  }
  *args.reached = reached;
}

}  // namespace candor::backend::cuda
