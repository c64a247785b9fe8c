#pragma once
// What each rank of several needs of the memory, before a weight is read: for machines of their own, and for people.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "candor/info.h"
#include "candor/options.h"

namespace candor::engine {

// [n_ranks]: the plan of every rank by itself, for as many K/V blocks as the plan of all together has. Nothing for a
// single rank, and of draft models nothing.
Result<std::vector<MemoryPlan>> plan_ranks(const EngineOptions& options, const MemoryPlan& together);

// What ranks say to each other for a step that chooses a token.
struct RankExchanges {
  int32_t n_of_token = 0;
  double of_layer = 0;
};
Result<RankExchanges> count_exchanges(const EngineOptions& options);

}  // namespace candor::engine
