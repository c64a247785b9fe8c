#pragma once
// One loaded model as the server uses it: its limits, its RequestTerms (what is added to requests), its Generations
// (which start the jobs), and the Core through which routes reach them. Borrows the engine and the ModelParts, which
// outlive it. Any thread.

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "candor/engine.h"
#include "serve/core/answer_slots.h"
#include "serve/core/api.h"
#include "serve/core/api_request.h"
#include "serve/core/generations.h"
#include "serve/core/job_list.h"
#include "serve/core/request_terms.h"
#include "serve/http/access.h"
#include "serve/http/fair_budget.h"
#include "serve/http/worker_pool.h"

namespace candor::serve {

// What the models of a server share. Borrowed.
struct ModelParts {
  http::WorkerPool& workers;
  const http::Access& access;
  AnswerSlots& places;
  JobList& jobs;
  http::FairBudget& bytes;
  std::atomic<uint64_t>& n_replies;  // ever
};

class ServedModel {
 public:
  // keep_alive: of a model that may be let go; empty: it stays.
  ServedModel(Engine& engine, ApiLimits limits, const ModelParts& parts, Models& models, double read_limit,
              std::function<void(double)> keep_alive = {})
      : adapters_(engine),
        limits_(with_adapters(std::move(limits), adapters_)),
        terms_(engine, limits_),
        generations_(
            {engine, parts.workers, parts.access, terms_, parts.places, parts.jobs, parts.n_replies, keep_alive},
            read_limit),
        core_{engine, terms_, generations_, parts.bytes, parts.places, models, adapters_, std::move(keep_alive)} {}
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;

  const Core& core() const { return core_; }

 private:
  static ApiLimits with_adapters(ApiLimits limits, const AdapterTerms& adapters) {
    limits.adapters = &adapters;
    return limits;
  }

  AdapterTerms adapters_;
  const ApiLimits limits_;
  const RequestTerms terms_;
  Generations generations_;
  const Core core_;
};

}  // namespace candor::serve
