#pragma once
// Computes how much memory each rank of several would need, from the file's metadata, before a weight is read: for
// ranks on machines of their own, and to show to people (`candor fit`). It also counts the exchanges between ranks per
// token.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "candor/info.h"
#include "candor/options.h"

namespace candor::engine {

// [n_ranks]: the plan of every rank by itself, for as many K/V blocks as the plan of all together has. Nothing for a
// single rank, and of draft models nothing.
Result<std::vector<MemoryPlan>> plan_ranks(const EngineOptions& options, const MemoryPlan& together);

// How often ranks exchange rows in a step that chooses one token: in all, and on average for each layer.
struct RankExchanges {
  int32_t n_of_token = 0;
  double of_layer = 0;
};
Result<RankExchanges> count_exchanges(const EngineOptions& options);

}  // namespace candor::engine
