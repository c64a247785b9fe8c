#include "backend/split.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"

namespace candor::backend {
namespace {

constexpr int64_t kPanelOutputs = 16;

// The first of n things that rank `rank` has; ceil, so that the lower ranks have no less than the others.
int32_t first_of(int64_t n, int32_t rank, int32_t n_ranks) {
  return static_cast<int32_t>((n * rank + n_ranks - 1) / n_ranks);
}

}  // namespace

std::vector<HeadShare> share_heads(const HeadCounts& heads, int32_t n_ranks) {
  CANDOR_CHECK(n_ranks >= 1 && n_ranks <= heads.n_heads && heads.n_kv_heads >= 1);
  const int32_t group = heads.n_heads / heads.n_kv_heads;
  std::vector<HeadShare> shares;
  if (heads.n_kv_heads >= n_ranks) {
    for (int32_t rank = 0; rank < n_ranks; ++rank) {
      const int32_t first = first_of(heads.n_kv_heads, rank, n_ranks);
      const int32_t n = first_of(heads.n_kv_heads, rank + 1, n_ranks) - first;
      shares.push_back({first * group, n * group, first, n});
    }
    return shares;
  }
  for (int32_t kv_head = 0; kv_head < heads.n_kv_heads; ++kv_head) {
    const int32_t first_rank = first_of(n_ranks, kv_head, heads.n_kv_heads);
    const int32_t n_sharing = first_of(n_ranks, kv_head + 1, heads.n_kv_heads) - first_rank;
    CANDOR_CHECK(n_sharing >= 1 && n_sharing <= group);
    for (int32_t i = 0; i < n_sharing; ++i) {
      const int32_t first = first_of(group, i, n_sharing);
      const int32_t n = first_of(group, i + 1, n_sharing) - first;
      shares.push_back({kv_head * group + first, n, kv_head, 1});
    }
  }
  return shares;
}

std::vector<int32_t> share_outputs(int64_t n_outputs, int32_t n_ranks) {
  const int64_t n_panels = ceil_div(n_outputs, kPanelOutputs);
  std::vector<int32_t> bounds;
  for (int32_t rank = 0; rank <= n_ranks; ++rank) {
    bounds.push_back(static_cast<int32_t>(std::min(n_outputs, first_of(n_panels, rank, n_ranks) * kPanelOutputs)));
  }
  return bounds;
}

}  // namespace candor::backend
