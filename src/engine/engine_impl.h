#pragma once
// The implementation of the public Engine class (candor/engine.h), and the ways for tests to open an engine on a
// backend of their own, with other limits on its helper processes, and to constrain a request by code of their own.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "candor/engine.h"
#include "candor/info.h"
#include "candor/options.h"
#include "candor/request.h"
#include "constrain/constraint.h"
#include "constrain/grammar_constraint.h"
#include "engine/disk/open_store.h"
#include "engine/images/image_reader.h"
#include "engine/images/image_store.h"
#include "engine/open/loaded_model.h"
#include "engine/request/active_request.h"
#include "engine/request/adapter_registry.h"
#include "engine/request/inbox.h"
#include "engine/request/prompt_reader.h"
#include "engine/request/request_check.h"
#include "engine/step/engine_metrics.h"
#include "engine/step/step_loop.h"
#include "obs/clock.h"
#include "sandbox/helper_pool.h"

namespace candor {

namespace engine {

using ConstraintFactory = std::function<Result<std::unique_ptr<constrain::Constraint>>(const ConstraintSpec& spec)>;

}  // namespace engine

struct Engine::Impl {
  Impl(engine::LoadedModel loaded_model, const sandbox::HelperOptions& helper_options);
  ~Impl();

  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options, const engine::BackendFactory& make_backend,
                                              const Progress& progress,
                                              const sandbox::HelperOptions& helper_options = {});

  static Impl& of(Engine& engine) { return *engine.impl_; }

  Result<RequestId> submit(const Request& request, Callback callback);
  Result<void> check_room(int32_t n_coming);
  Result<RequestId> submit_checked(const Request& request, Callback callback);
  Result<std::unique_ptr<engine::ActiveRequest>> read_request(const Request& request);
  Result<std::unique_ptr<constrain::Constraint>> compile(const ConstraintSpec& spec);
  Result<void> constrain_choices(const ConstraintSpec& spec, engine::ActiveRequest& request);
  Result<const constrain::GrammarCompiler*> compiler();
  Result<AdapterInfo> load_adapter(const AdapterSource& source);

  // Constant after construction, but for what the engine thread owns inside `loaded`.
  obs::SteadyClock clock;
  engine::LoadedModel loaded;
  engine::OpenedStore store;
  sandbox::HelperPool helpers;  // has locks of its own
  engine::Inbox inbox;
  std::unique_ptr<engine::ImageStore> images;         // nullptr: the model takes none; has locks of its own
  std::unique_ptr<engine::ImageReader> image_reader;  // of these
  engine::PromptReader reader;
  ModelInfo info;
  engine::RequestLimits limits;
  engine::ConstraintFactory make_constraint;  // empty: compile(); set before the first request

  // Guarded by compiler_mutex; made when the first constraint is asked for.
  std::mutex compiler_mutex;
  std::unique_ptr<constrain::GrammarCompiler> grammar_compiler;

  engine::AdapterRegistry adapters;  // has locks of its own
  engine::MetricStore metrics;
  engine::StepLoop loop;
  std::thread thread;  // the engine thread
};

namespace engine {

// Engine::open with another way to make the backend.
Result<std::unique_ptr<Engine>> open_with_backend(const EngineOptions& options, const BackendFactory& make_backend,
                                                  const Engine::Progress& progress = {});
// Engine::open with other limits on what runs in helper processes.
Result<std::unique_ptr<Engine>> open_with_helpers(const EngineOptions& options,
                                                  const sandbox::HelperOptions& helper_options);
// Engine::open with another way to make constraints.
Result<std::unique_ptr<Engine>> open_with_constraints(const EngineOptions& options, ConstraintFactory make);

}  // namespace engine
}  // namespace candor
