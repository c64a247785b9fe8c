#include "engine/open/rank_plans.h"

#include <utility>

#include "engine/open/loaded_model.h"
#include "engine/open/memory_plan.h"
#include "engine/open/rank_group.h"
#include "model/arch_spec.h"
#include "model/model.h"
#include "model/rank_splits.h"

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

Result<RankExchanges> count_exchanges(const EngineOptions& options) {
  CANDOR_ASSIGN(const auto file, open_model_file(options));
  CANDOR_ASSIGN(const model::ArchSpec spec, model::read_arch(*file));
  const int32_t n_beside = spec.embed.layer_dim > 0 ? 3 : 2;  // the embedding's rows, those of all layers, logits
  const int32_t n = model::exchanges_of_layers(spec);
  return RankExchanges{n + n_beside, n / static_cast<double>(spec.blocks.size())};
}

}  // namespace candor::engine
