#include "apps/bench/bare_model.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "apps/terminal/terminal.h"
#include "candor/info.h"
#include "engine/open/device_choice.h"
#include "engine/open/loaded_model.h"
#include "engine/open/memory_plan.h"

namespace candor::apps {

Result<BareModel> load_bare_model(EngineOptions options, int32_t usual_ctx, const WrapBackend& wrap) {
  const EndsOnInterrupt at_once;
  BareModel loaded;
  loaded.place = std::make_unique<platform::ScopedPlace>();
  CANDOR_ASSIGN(loaded.file, engine::open_model_file(options));
  if (options.n_ctx == 0 && usual_ctx > 0) {
    CANDOR_ASSIGN(const model::ArchSpec spec, model::read_arch(*loaded.file));
    options.n_ctx = std::min(usual_ctx, spec.max_positions);
  }
  CANDOR_ASSIGN(loaded.backend, engine::make_named_backend(options));
  if (wrap) loaded.backend = wrap(std::move(loaded.backend));
  CANDOR_ASSIGN(const MemoryPlan plan, engine::plan_memory(options, *loaded.file, *loaded.backend, nullptr));
  CANDOR_TRY(engine::check_fits(plan));
  ProgressBar bar("loading");
  const auto progress = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); };
  CANDOR_ASSIGN(loaded.model,
                model::Model::load(*loaded.file, *loaded.backend, {.progress = progress, .n_ctx = options.n_ctx}));
  loaded.file->drop_copies();
  return loaded;
}

}  // namespace candor::apps
