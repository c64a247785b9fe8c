#include "apps/bench/load_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "apps/terminal/terminal.h"
#include "candor/info.h"
#include "candor/request.h"

namespace candor::apps {
namespace {

using Clock = std::chrono::steady_clock;

class Runner {
 public:
  Runner(Engine& engine, const Load& load, const LoadRunOptions& options)
      : engine_(engine), load_(load), options_(options) {
    run_.records.resize(load.requests.size());
    for (size_t i = 0; i < load.requests.size(); ++i) {
      run_.records[i].n_prompt = load.requests[i].n_prompt;
      run_.records[i].token_s.reserve(static_cast<size_t>(load.requests[i].n_new));
      run_.records[i].tokens.reserve(static_cast<size_t>(load.requests[i].n_new));
    }
  }

  LoadRun run() {
    engine_.on_step([this](const StepReport& report) { on_step(report); });
    for (size_t i = 0; i < load_.requests.size() && wait_for_turn(load_.requests[i]); ++i) send(i);
    wait_for_all();
    engine_.on_step({});
    run_.duration_s = now_s();
    return std::move(run_);
  }

 private:
  double now_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  // False once Ctrl-C was pressed.
  bool wait_for_turn(const LoadRequest& request) {
    std::unique_lock lock(mutex_);
    while (!interrupted()) {
      const double early_s = request.at_s - now_s();
      const bool has_room = options_.max_in_flight == 0 || n_in_flight_ < options_.max_in_flight;
      if (early_s <= 0 && has_room) return true;
      const double pause_s = has_room ? std::min(early_s, 0.05) : 0.05;
      changed_.wait_for(lock, std::chrono::duration<double>(pause_s));
    }
    return false;
  }

  void send(size_t i) {
    Request request;
    request.prompt = make_prompt(load_.requests[i].n_prompt, options_.n_shared, engine_.info().n_vocab, options_.seed,
                                 static_cast<uint32_t>(i));
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = load_.requests[i].n_new;
    LoadRecord& record = run_.records[i];
    record.submitted_s = now_s();
    {
      const std::lock_guard lock(mutex_);
      ++n_in_flight_;
    }
    auto id = engine_.submit(request, [this, &record](const TokenEvent& event) { on_event(record, event); });
    if (id) {
      ids_.push_back(*id);
      return;
    }
    record.error = id.error().message;
    const std::lock_guard lock(mutex_);
    --n_in_flight_;
  }

  void on_event(LoadRecord& record, const TokenEvent& event) {
    if (event.token >= 0) {
      record.token_s.push_back(now_s());
      record.tokens.push_back(event.token);
    }
    if (!event.summary) return;
    record.end_s = now_s();
    record.summary = *event.summary;
    record.is_done = event.finish == FinishReason::kLength || event.finish == FinishReason::kContextFull;
    if (event.error) record.error = event.error->message;
    const std::lock_guard lock(mutex_);
    --n_in_flight_;
    changed_.notify_one();
  }

  void on_step(const StepReport& report) {
    if (report.n_prefill_rows > 0 || report.n_rows == 0) return;
    ++run_.decode.n_steps;
    run_.decode.n_tokens += report.n_sampled;
    run_.decode.ms += report.plan_ms + report.compute_ms + report.pick_ms;
  }

  void wait_for_all() {
    std::unique_lock lock(mutex_);
    while (n_in_flight_ > 0) {
      if (interrupted() && !run_.was_interrupted) {
        run_.was_interrupted = true;
        for (const RequestId id : ids_) static_cast<void>(engine_.cancel(id));
      }
      changed_.wait_for(lock, std::chrono::milliseconds(50));
    }
  }

  Engine& engine_;
  const Load& load_;
  const LoadRunOptions& options_;
  const Clock::time_point began_ = Clock::now();
  LoadRun run_;
  std::vector<RequestId> ids_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t n_in_flight_ = 0;  // guarded by mutex_
};

}  // namespace

LoadRun run_load(Engine& engine, const Load& load, const LoadRunOptions& options) {
  return Runner(engine, load, options).run();
}

}  // namespace candor::apps
