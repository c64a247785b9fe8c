#pragma once
// Collects the events of one step until the Publisher hands them to their requests. Event objects, and their memory,
// are reused from step to step. Engine thread only.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "candor/event.h"
#include "engine/request/active_request.h"

namespace candor::engine {

struct Outgoing {
  ActiveRequest* request = nullptr;  // nullptr: the event was taken out
  TokenEvent event{};
};

class Outbox {
 public:
  // An event of `choice` without content. The reference is valid until the next call.
  TokenEvent& add(ActiveRequest& request, int32_t choice) {
    if (n_events_ == events_.size()) events_.emplace_back();
    Outgoing& outgoing = events_[n_events_++];
    outgoing.request = &request;
    TokenEvent& event = outgoing.event;
    event.request = request.id;
    event.choice = choice;
    event.token = -1;
    event.text.clear();
    event.logprob.reset();
    event.predicted.reset();
    event.top_logprobs.clear();
    event.explanation.reset();
    event.prompt_logprobs.clear();
    event.embedding.clear();
    event.prompt_rows = {};
    event.finish.reset();
    event.stop_index.reset();
    event.score.reset();
    event.error.reset();
    event.summary.reset();
    return event;
  }
  std::span<Outgoing> events() { return std::span(events_).first(n_events_); }
  size_t n_events() const { return n_events_; }
  TokenEvent& event(size_t i) { return events_[i].event; }
  // The event will not go out with the others.
  TokenEvent take(size_t i) {
    events_[i].request = nullptr;
    return std::move(events_[i].event);
  }
  // Only the first n stay.
  void truncate(size_t n) { n_events_ = n; }

 private:
  std::vector<Outgoing> events_;
  size_t n_events_ = 0;
};

}  // namespace candor::engine
