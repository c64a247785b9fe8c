#include "apps/explain/trace.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "backend/backend.h"
#include "base/error.h"
#include "engine/engine_impl.h"
#include "engine/open/device_choice.h"
#include "engine/open/loaded_model.h"
#include "model/model.h"

namespace candor::apps {
namespace {

void add(backend::OpTimes& sum, const backend::OpTimes& times) {
  for (size_t i = 0; i < backend::kOpKinds; ++i) {
    const auto kind = static_cast<backend::OpKind>(i);
    sum.of(kind).n_calls += times.of(kind).n_calls;
    sum.of(kind).ns += times.of(kind).ns;
    sum.of(kind).weight_bytes += times.of(kind).weight_bytes;
  }
}

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::open(const EngineOptions& options) {
  std::unique_ptr<Tracer> tracer(new Tracer);
  const auto make = [&](const EngineOptions& o) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(auto inner, engine::make_named_backend(o));
    auto timed = std::make_unique<backend::TimedBackend>(std::move(inner), tracer->clock_);
    tracer->timed_ = timed.get();
    auto recording = std::make_unique<backend::RecordingBackend>(std::move(timed));
    tracer->recording_ = recording.get();
    return recording;
  };
  auto engine = engine::open_with_backend(options, make);
  if (!engine) return engine.error();
  tracer->engine_ = std::move(*engine);
  if (auto file = formats::open_model_file(options.model_path)) {
    tracer->file_ = std::move(*file);
    if (auto spec = model::read_arch(*tracer->file_)) tracer->spec_ = std::move(*spec);
  }
  return tracer;
}

// Runs on the engine thread, between two steps.
void Tracer::add_step(const StepReport& report, Trace& trace) {
  Phase& phase = report.n_prefill_rows > 0 ? trace.prefill : trace.decode;
  ++phase.n_steps;
  phase.n_rows += report.n_rows;
  phase.compute_ms += report.compute_ms;
  phase.plan_ms += report.plan_ms;
  phase.pick_ms += report.pick_ms;
  add(phase.ops, timed_->times());
  timed_->times().clear();
}

Result<Trace> Tracer::run(const Request& request) {
  Trace trace;
  trace.spec = spec_;
  auto prompt = engine_->tokenize(request.prompt);
  if (!prompt) return prompt.error();
  trace.prompt = std::move(*prompt);
  if (!trace.prompt.empty()) {
    trace.positions = positions_of(spec_, static_cast<int32_t>(trace.prompt.size()) - 1);
    if (file_) trace.embedding = embedding_of(*file_, spec_, trace.prompt.back());
  }
  timed_->times().clear();
  engine_->on_step([&](const StepReport& report) { add_step(report, trace); });
  const auto keep = [&trace](const TokenEvent& event) { trace.events.push_back(event); };
  auto completion = engine_->generate(request, keep);
  engine_->on_step({});
  trace.operations = recording_->step().lines();
  if (!completion) return completion.error();
  trace.summary = std::move(completion->summary);
  trace.was_drawn = std::ranges::any_of(
      trace.events, [](const TokenEvent& event) { return event.explanation && event.explanation->was_drawn; });
  return trace;
}

}  // namespace candor::apps
