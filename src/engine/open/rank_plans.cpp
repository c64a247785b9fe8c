#include "engine/open/rank_plans.h"

#include "engine/open/loaded_model.h"
#include "engine/open/memory_plan.h"
#include "engine/open/rank_crew.h"

namespace candor::engine {

Result<std::vector<MemoryPlan>> plan_ranks(const EngineOptions& options, const MemoryPlan& together) {
  std::vector<MemoryPlan> plans;
  if (options.n_ranks < 2) return plans;
  EngineOptions own = options;
  own.kv_blocks = together.kv_blocks;
  CANDOR_ASSIGN(const auto file, open_model_file(own));
  for (int32_t rank = 0; rank < own.n_ranks; ++rank) {
    CANDOR_ASSIGN(const auto backend, make_planning_rank(own, rank));
    CANDOR_ASSIGN(MemoryPlan plan, plan_memory(own, *file, *backend, nullptr));
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace candor::engine
