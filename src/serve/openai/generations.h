#pragma once
// Generations and embeddings, from a request that was let in to the job that answers it. Called on workers.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "candor/engine.h"
#include "serve/http/access.h"
#include "serve/http/exchange.h"
#include "serve/http/worker_pool.h"
#include "serve/openai/answer_places.h"
#include "serve/openai/job_list.h"
#include "serve/openai/request_terms.h"

namespace candor::openai {

// What generations work with. Borrowed.
struct GenerationParts {
  Engine& engine;
  http::WorkerPool& workers;
  const http::Access& access;
  const RequestTerms& terms;
  AnswerPlaces& places;
  JobList& jobs;
};

class Generations {
 public:
  // read_limit: bytes a second that this machine's memory gives; 0: unknown.
  Generations(const GenerationParts& parts, double read_limit);

  // REQUIRES, both: the exchange's state is a PlaceTicket of its key.
  void generate(const std::shared_ptr<http::Exchange>& exchange, bool is_chat);
  void embed(const std::shared_ptr<http::Exchange>& exchange);
  // A job that is not started.
  std::shared_ptr<Job> make_job(const ApiRequest& request, std::unique_ptr<Sink> sink, std::shared_ptr<Ticket> ticket);

 private:
  const GenerationParts parts_;
  const std::string fingerprint_;
  const double decode_limit_;  // tokens a second of one request, where each reads all weights
  std::atomic<uint64_t> n_replies_ever_{0};
};

int64_t unix_seconds();

}  // namespace candor::openai
