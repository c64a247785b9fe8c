#pragma once
// One request run with everything recorded: its tokens as they came about, and where the time of its steps went, by
// operation. For `candor explain`.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/explain/positions.h"
#include "backend/wrap/recording_backend.h"
#include "backend/wrap/timed_backend.h"
#include "candor/engine.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "obs/clock.h"

namespace candor::apps {

// Steps of one kind: those that read the prompt, or those that decode.
struct Phase {
  int64_t n_steps = 0;
  int64_t n_rows = 0;
  double compute_ms = 0;
  double plan_ms = 0;  // planning, and making drafts
  double pick_ms = 0;  // from logits to tokens
  backend::OpTimes ops{};
};

struct Trace {
  model::ArchSpec spec{};
  std::vector<PositionView> positions{};  // of the prompt's last token, as its row of the embedding
  std::optional<EmbeddingView> embedding{};
  bool was_drawn = false;
  std::vector<TokenId> prompt{};
  std::vector<TokenEvent> events{};
  RequestSummary summary{};
  Phase prefill{};
  Phase decode{};
  std::vector<std::string> operations{};  // of the last step, a line each, where they were asked for
};

class Tracer {
 public:
  static Result<std::unique_ptr<Tracer>> open(const EngineOptions& options);
  // REQUIRES: one at a time.
  Result<Trace> run(const Request& request);
  Engine& engine() { return *engine_; }
  // The operations of each later trace's last step are kept.
  void record_operations() { recording_->record(true); }

 private:
  void add_step(const StepReport& report, Trace& trace);

  obs::SteadyClock clock_;
  // Of engine_; read between its steps.
  backend::RecordingBackend* recording_ = nullptr;
  backend::TimedBackend* timed_ = nullptr;
  std::unique_ptr<formats::ModelFile> file_;  // nullptr where it could not be opened again
  model::ArchSpec spec_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace candor::apps
