#pragma once
// A model in a backend without an engine around it: for commands that score or time it directly.

#include <cstdint>
#include <functional>
#include <memory>

#include "backend/backend.h"
#include "base/error.h"
#include "candor/engine.h"
#include "formats/model_file.h"
#include "model/model.h"
#include "platform/numa.h"

namespace candor::apps {

// In the order of their lifetimes.
struct BareModel {
  std::unique_ptr<platform::ScopedPlace> place;  // of the caller, which computes
  std::unique_ptr<formats::ModelFile> file;
  std::unique_ptr<backend::Backend> backend;
  std::unique_ptr<model::Model> model;
};

// Loads with a progress bar on stderr. Of the options: model_path, quantize, fast_weights, backend, n_threads, n_ranks,
// and n_ctx, max_running and max_rows for the memory that the caller will reserve; what does not fit is refused before
// a weight is read. usual_ctx: the context where n_ctx is 0, unless the model has less.
// wrap: what is put around the backend before weights are read.
using WrapBackend = std::function<std::unique_ptr<backend::Backend>(std::unique_ptr<backend::Backend>)>;
Result<BareModel> load_bare_model(EngineOptions options, int32_t usual_ctx = 0, const WrapBackend& wrap = {});

}  // namespace candor::apps
