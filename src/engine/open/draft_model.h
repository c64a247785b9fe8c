#pragma once
// What drafts for the model, where EngineOptions asks for it: a small model, or a head of the model, its weights in the
// same backend, and its own K/V, one slot for each sequence that may run. Caller's thread until the engine runs, then
// the engine thread's.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/ids.h"
#include "candor/drafts.h"
#include "candor/options.h"
#include "draft/model_drafter.h"
#include "formats/model_file.h"
#include "model/model.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// Planned from metadata alone.
struct DraftPlan {
  std::unique_ptr<formats::ModelFile> file{};  // nullptr: the model's own
  DraftSource source = DraftSource::kModel;
  model::ModelPlan model{};
  draft::DraftSlots slots{};
  uint64_t kv_bytes = 0;  // and the vectors that are kept for a head

  bool is_head() const { return source != DraftSource::kModel; }
};

// Speculation::kDraft and kEagle: draft_path names it.
bool has_draft_file(const EngineOptions& options);

// Alone, or beside a draft model or a head. REQUIRES: not Speculation::kAuto.
bool drafts_by_ngrams(const EngineOptions& options);

// What Speculation::kAuto stands for with this model. A head in a file of its own beside the model's is the model's
// too.
EngineOptions choose_drafts(EngineOptions options, const formats::ModelFile& file);

// Opened and described, without slots; nullopt where none is asked for. file: the model's.
Result<std::optional<DraftPlan>> open_draft(const EngineOptions& options, const formats::ModelFile& file,
                                            const backend::Backend& backend);
// Gives it slots for a context of n_ctx. Refuses a model made for too short a one.
Result<void> plan_slots(DraftPlan& plan, const EngineOptions& options, const backend::Backend& backend, int32_t n_ctx);

struct DraftModel {
  std::unique_ptr<formats::ModelFile> file{};
  std::unique_ptr<model::Model> model{};
  DraftSource source = DraftSource::kModel;
  std::vector<TokenId> tokens{};  // the model's, for each of a head's logits; empty: the first ones
  std::unique_ptr<backend::KvStore> kv{};
  draft::DraftSlots slots{};

  bool is_head() const { return source != DraftSource::kModel; }
};

// The model that is drafted for.
struct DraftedModel {
  const formats::ModelFile& file;
  const text::Tokenizer& tokenizer;
  model::Model& model;  // keeps its rows from now on, where a head reads them
};
// Refuses, with the first token that differs, a draft whose vocabulary is not the tokenizer's.
Result<DraftModel> load_draft(DraftPlan plan, const EngineOptions& options, const DraftedModel& drafted,
                              backend::Backend& backend);
// Its weights alone, in the order in which all ranks load them. own: the draft's file.
Result<std::unique_ptr<model::Model>> load_draft_weights(const formats::ModelFile& own, bool is_head,
                                                         const EngineOptions& options, model::Model& model,
                                                         backend::Backend& backend);

}  // namespace candor::engine
