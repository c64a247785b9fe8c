#pragma once
// How several ranks, or two devices, divide a model: which outputs of each weight and which heads a rank has, the place
// of a weight in the model (placement.h), the blocks that a pass runs (the other ranks follow rank 0), and what was sent
// between ranks. Backends that compute alone ignore all of it.

#include <cstdint>
#include <vector>

#include "backend/placement.h"

namespace candor::backend {

inline constexpr int32_t kMostRanks = 64;

// What each rank keeps of a weight.
enum class SplitKind : uint8_t {
  kWhole,       // all of it
  kFirst,       // rank 0 all of it, the others nothing
  kOutputs,     // panels of outputs
  kQueryHeads,  // the rows of its heads
  kKvHeads,     // the rows of its K/V heads
};

struct HeadCounts {
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;  // divides n_heads
  bool operator==(const HeadCounts&) const = default;
};

struct WeightSplit {
  SplitKind kind = SplitKind::kWhole;
  HeadCounts heads{};       // of kQueryHeads and kKvHeads
  bool is_read = false;     // its numbers decide where rows go: a vector of kWhole
  bool goes_along = false;  // its outputs are read whole, at the same time as others': one exchange is enough
  WeightPlace place{};
};

// Heads of one rank: all of them share its K/V heads evenly.
struct HeadShare {
  int32_t first_head = 0;
  int32_t n_heads = 0;
  int32_t first_kv_head = 0;
  int32_t n_kv_heads = 0;
};

// Each rank's heads, ascending. K/V heads are shared out where there are as many as ranks; else ranks that share one
// share out its query heads, and each keeps it. REQUIRES: 1 <= n_ranks <= n_heads.
std::vector<HeadShare> share_heads(const HeadCounts& heads, int32_t n_ranks);

// [n_ranks + 1]: outputs in panels of 16, as even as can be. Ranks may be left without any.
std::vector<int32_t> share_outputs(int64_t n_outputs, int32_t n_ranks);

// What ranks have put together since they began, and the bytes that this one sent.
struct RankTraffic {
  int64_t n_exchanges = 0;
  uint64_t n_bytes = 0;
};

// What a pass through the model runs: blocks [first, end), or the attention of every block.
struct Pass {
  int32_t model = 0;  // Backend::add_model()
  int32_t first = 0;
  int32_t end = 0;
  bool is_attention = false;
};

}  // namespace candor::backend
