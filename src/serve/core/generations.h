#pragma once
// Starts the jobs that answer requests: checks an admitted request, takes its answer slots, and makes the generation or
// embedding job. Called on workers.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "candor/engine.h"
#include "serve/core/answer_slots.h"
#include "serve/core/api_request.h"
#include "serve/core/job.h"
#include "serve/core/job_list.h"
#include "serve/core/json_body.h"
#include "serve/core/request_terms.h"
#include "serve/core/stream_format.h"
#include "serve/http/access.h"
#include "serve/http/exchange.h"
#include "serve/http/message.h"
#include "serve/http/worker_pool.h"

namespace candor::serve {

// What generations work with. Borrowed.
struct GenerationParts {
  Engine& engine;
  http::WorkerPool& workers;
  const http::Access& access;
  const RequestTerms& terms;
  AnswerSlots& places;
  JobList& jobs;
  std::atomic<uint64_t>& n_replies;  // ever, of all models
  std::function<void(double)> keep_alive{};  // as Core has it
};

// How an interface's route makes a generation of a body, and how its reply is written.
struct Endpoint {
  Result<ApiRequest> (*parse)(const Json& body, const RequestTerms& terms) = nullptr;
  StreamFormat format = StreamFormat::kData;
  std::string_view id_prefix{};  // of the reply's id
};

class Generations {
 public:
  // read_limit: bytes a second that this machine's memory gives; 0: unknown.
  Generations(const GenerationParts& parts, double read_limit);

  double read_limit() const { return read_limit_; }

  // REQUIRES, all: the exchange's state is a PlaceTicket of its key.
  void generate(const std::shared_ptr<http::Exchange>& exchange, const Endpoint& endpoint);
  // The same, of a request that is read already, or why there is none.
  void answer(const std::shared_ptr<http::Exchange>& exchange, Result<ApiRequest> request, const Endpoint& endpoint);
  void embed(const std::shared_ptr<http::Exchange>& exchange, Result<EmbeddingRequest> request);
  // A job that is not started, of a settled request.
  std::shared_ptr<Job> make_job(const ApiRequest& request, std::string_view id_prefix, std::unique_ptr<Sink> sink,
                                std::shared_ptr<Ticket> ticket);

 private:
  http::Headers headers_of(const http::Exchange& exchange, const http::Headers& more) const;

  const GenerationParts parts_;
  const std::string fingerprint_;
  const double read_limit_;
  const double decode_limit_;  // tokens a second of one request, where each reads all weights
};

int64_t unix_seconds();
// Of the next reply: sixteen hexadecimal digits that no other has.
std::string next_reply_number(std::atomic<uint64_t>& n_replies);

}  // namespace candor::serve
