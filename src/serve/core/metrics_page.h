#pragma once
// GET /metrics, in Prometheus' text format. Counters of the server's own, and the engine's at the moment of asking.
// Any thread.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "candor/engine.h"
#include "candor/info.h"
#include "serve/core/metrics_text.h"
#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"
#include "serve/http/server.h"

namespace candor::serve {

// What stands in the server now.
struct ServerFigures {
  const http::Faults& faults;
  const http::FairBudget& bytes;  // in flight
  int32_t n_jobs = 0;             // generations in work
};

// One model that is loaded.
struct ModelFigures {
  const Engine& engine;
  std::string name{};
  double read_limit = 0;  // bytes a second that this machine's memory gives; 0: unknown
};

// By who makes them: the drafters of the model, and callers where any predicted.
void add_drafts(const DraftUsages& drafts, const ModelInfo& info, MetricsText& families);
// Of a device with memory of its own; of none nothing.
void add_device(const DeviceStats& stats, MetricsText& families);

class MetricsPage {
 public:
  void count_reply(int status);
  void count_failed_handshake(http::HandshakeFailure failure) { ++failed_handshakes_[static_cast<size_t>(failure)]; }
  // is_named: figures of models carry the label `model`.
  std::string text(std::span<const ModelFigures> models, bool is_named, const ServerFigures& server) const;

 private:
  std::array<std::atomic<uint64_t>, 4> failed_handshakes_{};
  mutable std::mutex mutex_;
  std::map<int, uint64_t> replies_;  // by status; guarded by mutex_
};

}  // namespace candor::serve
