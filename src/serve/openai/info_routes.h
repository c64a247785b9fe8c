#pragma once
// What the server says of itself: whether it lives, its metrics, and its model. Any thread.

#include <cstdint>
#include <string>

#include "candor/engine.h"
#include "serve/http/exchange.h"
#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"
#include "serve/openai/answer_places.h"
#include "serve/openai/api_request.h"
#include "serve/openai/generations.h"
#include "serve/openai/metrics_page.h"

namespace candor::openai {

// What it is said from. Borrowed.
struct InfoParts {
  const Engine& engine;
  const ApiLimits& limits;
  const MetricsPage& metrics;
  const http::Faults& faults;
  const http::FairBudget& bytes;
  const AnswerPlaces& places;
};

class InfoRoutes {
 public:
  // read_limit: bytes a second that this machine's memory gives; 0: unknown.
  InfoRoutes(const InfoParts& parts, double read_limit)
      : parts_(parts), read_limit_(read_limit), created_(unix_seconds()) {}

  void metrics(http::Exchange& exchange) const;
  void health(http::Exchange& exchange) const;
  void ready(http::Exchange& exchange) const;
  void models(http::Exchange& exchange) const;
  // The one that the path names.
  void model(http::Exchange& exchange) const;

 private:
  Json model_json() const;

  const InfoParts parts_;
  const double read_limit_;
  const int64_t created_;
};

}  // namespace candor::openai
