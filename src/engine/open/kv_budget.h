#pragma once
// Computes how many K/V blocks an engine gets, and how long a context they allow. Integers only.

#include <cstdint>

#include "base/error.h"
#include "candor/options.h"

namespace candor::engine {

struct KvBudget {
  int32_t n_ctx = 0;
  int32_t n_blocks = 0;
};

// model_positions: the model's own context limit; block_bytes: of one block over all layers. An n_ctx that was asked
// for and cannot be held is refused with the numbers; one that was not is cut.
Result<KvBudget> plan_kv(const EngineOptions& options, int32_t model_positions, int64_t block_bytes);

}  // namespace candor::engine
