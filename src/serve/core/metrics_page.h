#pragma once
// GET /metrics, in Prometheus' text format. Counters of the server's own, and the engine's at the moment of asking.
// Any thread.

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "candor/engine.h"
#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"

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

class MetricsPage {
 public:
  void count_reply(int status);
  // is_named: figures of models carry the label `model`.
  std::string text(std::span<const ModelFigures> models, bool is_named, const ServerFigures& server) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, uint64_t> replies_;  // by status; guarded by mutex_
};

}  // namespace candor::serve
