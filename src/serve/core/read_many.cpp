#include "serve/core/read_many.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "candor/event.h"

namespace candor::serve {
namespace {

constexpr size_t kAtOnce = 256;
constexpr std::chrono::milliseconds kPause(200);

// Requests in work, and what they gave until those before it have come.
class Reading {
 public:
  Reading(Engine& engine, const ReadMany& asked) : engine_(engine), asked_(asked) {}

  Result<bool> run() {
    while (n_delivered_ < asked_.requests.size() && !error_ && (!asked_.goes_on || asked_.goes_on())) {
      send();
      collect();
      tell();
    }
    settle();
    if (error_) return *error_;
    return n_delivered_ == asked_.requests.size();
  }

 private:
  static Error of_text(size_t index, Error error) {
    error.message = "text " + std::to_string(index + 1) + ": " + error.message;
    return error;
  }

  void send() {
    while (n_sent_ < asked_.requests.size() && ids_.size() - n_done_ < kAtOnce && !error_) {
      const size_t index = n_sent_;
      const auto id =
          engine_.submit(asked_.requests[index], [this, index](const TokenEvent& event) { on_event(index, event); });
      if (!id && id.error().kind == ErrorKind::kOverloaded && ids_.size() > n_done_) return;
      if (!id) {
        error_ = of_text(index, id.error());
        return;
      }
      ids_.push_back(*id);
      ++n_sent_;
    }
  }

  // The engine's thread.
  void on_event(size_t index, const TokenEvent& event) {
    if (!event.summary) return;
    const std::lock_guard lock(mutex_);
    if (event.error && !failed_) failed_ = of_text(index, *event.error);
    ReadText& text = come_[index];
    text.numbers = event.embedding.empty() ? event.prompt_rows : event.embedding;
    text.words = event.sparse;
    for (const PromptLogprob& one : event.prompt_logprobs) {
      text.numbers.insert(text.numbers.end(), {one.logprob.logprob, one.top.empty() ? 0.0f : one.top.front().logprob});
    }
    text.n_tokens = event.summary->usage.prompt_tokens;
    text.n_cut = event.summary->usage.truncated_tokens;
    changed_.notify_one();
  }

  void collect() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPause, [this] { return !come_.empty(); });
    n_done_ += come_.size();
    waiting_.merge(come_);
    come_.clear();
    if (failed_ && !error_) error_ = failed_;
  }

  void tell() {
    while (!error_ && waiting_.contains(n_delivered_)) {
      auto text = waiting_.extract(n_delivered_);
      asked_.on_read(n_delivered_++, std::move(text.mapped()));
    }
  }

  // Nothing is in work any more when it returns.
  void settle() {
    for (const RequestId id : ids_) {
      if (const auto cancelled = engine_.cancel(id); !cancelled) continue;  // it has ended
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return n_done_ + come_.size() == ids_.size(); });
  }

  Engine& engine_;
  const ReadMany& asked_;
  std::vector<RequestId> ids_;
  std::map<size_t, ReadText> waiting_;
  std::optional<Error> error_;
  size_t n_sent_ = 0, n_delivered_ = 0, n_done_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, ReadText> come_;  // guarded by mutex_
  std::optional<Error> failed_;      // guarded by mutex_
};

}  // namespace

Result<bool> read_many(Engine& engine, const ReadMany& reading) {
  return Reading(engine, reading).run();
}

}  // namespace candor::serve
