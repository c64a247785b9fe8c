#pragma once
// Everything that open() makes of a model file: tokenizer, backend, weights, K/V store, arena, draft model. Destroyed
// in reverse order of construction, so that the backend outlives what it made. The backend parts belong to the engine
// thread once the engine runs; file and tokenizer are immutable.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "backend/wrap/attention_watch.h"
#include "base/error.h"
#include "base/ids.h"
#include "candor/adapters.h"
#include "candor/info.h"
#include "candor/options.h"
#include "draft/drafter.h"
#include "engine/open/draft_model.h"
#include "engine/open/loaded_vision.h"
#include "formats/model_file.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/text_head.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// An adapter in the backend, under its number.
struct PlacedAdapter {
  AdapterInfo info{};
  AdapterId id = kNoAdapter;
};

// Makes the backend that the options name; tests pass backends of their own.
using BackendFactory = std::function<Result<std::unique_ptr<backend::Backend>>(const EngineOptions& options)>;

struct LoadedModel {
  EngineOptions options{};  // as the model wants them; n_ctx, kv_blocks and costs are what is in effect
  std::unique_ptr<formats::ModelFile> file{};
  std::unique_ptr<text::Tokenizer> tokenizer{};
  std::unique_ptr<backend::Backend> backend{};
  backend::AttentionWatch* attention = nullptr;   // around `backend`, where the model takes images and runs on one rank
  const kernels::KernelTable* kernels = nullptr;  // for what is computed here: sampling
  std::unique_ptr<model::Model> model{};
  std::unique_ptr<backend::KvStore> kv{};
  std::optional<DraftModel> draft{};
  std::vector<PlacedAdapter> adapters{};   // that the options name
  std::unique_ptr<LoadedVision> vision{};  // nullptr: no images
  model::TextHead head{};                  // what becomes of texts that are only read

  int32_t n_ctx() const { return static_cast<int32_t>(options.n_ctx); }
  // No layer looks further back; 0 = some layer sees everything.
  int32_t window_tokens() const;
  // Ids that exist both as text and as logits.
  int32_t n_vocab() const { return tokenizer->n_vocab(); }
};

// The model that the options name; where they ask for it, quantised while it is read, or with fast
// weights.
Result<std::unique_ptr<formats::ModelFile>> open_model_file(const EngineOptions& options);
Result<void> check_options(const EngineOptions& options);
// Borrows the model. REQUIRES: loaded.draft.
std::unique_ptr<draft::Drafter> make_drafter(LoadedModel& loaded);
Result<LoadedModel> load_model(const EngineOptions& options, const BackendFactory& make_backend,
                               const LoadProgress& progress);
// Without what the chat template decides.
ModelInfo describe(const LoadedModel& loaded);

}  // namespace candor::engine
