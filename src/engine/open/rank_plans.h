#pragma once
// What each rank of several needs of the memory, before a weight is read: for machines of their own, and for people.

#include <vector>

#include "base/error.h"
#include "candor/info.h"
#include "candor/options.h"

namespace candor::engine {

// [n_ranks]: the plan of every rank by itself, for as many K/V blocks as the plan of all together has. Nothing for a
// single rank, and of draft models nothing.
Result<std::vector<MemoryPlan>> plan_ranks(const EngineOptions& options, const MemoryPlan& together);

}  // namespace candor::engine
