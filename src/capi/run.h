#pragma once
// A request in work, whose events are pulled. The engine's thread puts them in; whoever calls takes turns.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "capi/registry.h"

namespace candor::capi {

class Run final : public Object {
 public:
  // The text of the first choice, once its last event was pulled.
  using OnText = std::function<void(std::string text)>;

  static Result<std::shared_ptr<Run>> start(const std::shared_ptr<Engine>& engine, const Request& request,
                                            OnText on_text = {});

  // candor_next(); error: that of the event, where it has one.
  candor_status next(candor_event& event, int64_t timeout_ms, std::optional<Error>& error);
  // candor_run_fd().
  Result<int> fd();
  void cancel();
  void close() override { cancel(); }
  // Refused before the last event was pulled.
  Result<RequestSummary> summary();
  // Of the event that was pulled last; refused where it tells nothing.
  Result<TokenEvent> explained();
  std::shared_ptr<Engine> engine() const { return engine_.lock(); }

 private:
  // What the engine's callback keeps, whoever else is gone.
  struct Queue {
    ~Queue();
    std::mutex mutex;
    std::condition_variable arrived;
    std::deque<TokenEvent> events;
    int fd = -1;  // of an eventfd, whose count is above 0 while there are events; -1: nobody asked for one
  };
  void show(candor_event& event);

  std::weak_ptr<Engine> engine_;
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  RequestId id_ = 0;
  std::mutex turn_;  // of those who pull
  TokenEvent last_;
  std::vector<candor_logprob> top_;
  std::string text_;
  OnText on_text_;
  bool has_event_ = false;
  bool has_ended_ = false;
};

}  // namespace candor::capi
