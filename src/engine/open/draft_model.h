#pragma once
// The small model that drafts for the large one, where EngineOptions asks for it: its weights in the same backend, and
// its own K/V, one slot for each sequence that may run. Caller's thread until the engine runs, then the engine
// thread's.

#include <cstdint>
#include <memory>
#include <optional>

#include "backend/backend.h"
#include "base/error.h"
#include "candor/options.h"
#include "draft/model_drafter.h"
#include "formats/model_file.h"
#include "model/model.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// Planned from metadata alone.
struct DraftPlan {
  std::unique_ptr<formats::ModelFile> file{};
  model::ModelPlan model{};
  draft::DraftSlots slots{};
  uint64_t kv_bytes = 0;
};

// Opened and described, without slots; nullopt where no draft model is asked for.
Result<std::optional<DraftPlan>> open_draft(const EngineOptions& options, const backend::Backend& backend);
// Gives it slots for a context of n_ctx. Refuses a model made for too short a one.
Result<void> plan_slots(DraftPlan& plan, const EngineOptions& options, const backend::Backend& backend, int32_t n_ctx);

struct DraftModel {
  std::unique_ptr<formats::ModelFile> file{};
  std::unique_ptr<model::Model> model{};
  std::unique_ptr<backend::KvStore> kv{};
  draft::DraftSlots slots{};
};

// Refuses, with the first token that differs, a model whose vocabulary is not the tokenizer's.
Result<DraftModel> load_draft(DraftPlan plan, const EngineOptions& options, const text::Tokenizer& tokenizer,
                              backend::Backend& backend);

}  // namespace candor::engine
