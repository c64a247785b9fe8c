#include "serve/openai/generations.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "serve/openai/embedding_job.h"
#include "serve/openai/http_sink.h"

namespace candor::openai {
namespace {

std::shared_ptr<PlaceTicket> ticket_of(http::Exchange& exchange) {
  return std::static_pointer_cast<PlaceTicket>(std::exchange(exchange.state, nullptr));
}

void refuse(http::Exchange& exchange, PlaceTicket& ticket, const Error& error) {
  ticket.free_places();
  exchange.respond(http::error_response(error));
}

}  // namespace

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Generations::Generations(const GenerationParts& parts, double read_limit)
    : parts_(parts),
      fingerprint_(fingerprint_of(parts.engine.info())),
      decode_limit_(read_limit / static_cast<double>(std::max<uint64_t>(1, parts.engine.info().weight_bytes))) {}

std::shared_ptr<Job> Generations::make_job(const ApiRequest& request, std::unique_ptr<Sink> sink,
                                           std::shared_ptr<Ticket> ticket) {
  static const uint64_t kRun = std::random_device{}();
  const size_t n_choices = request.requests.size() * static_cast<size_t>(request.n_choices);
  const SamplingParams& sampling = request.requests.front().sampling;
  ReplyHead head{.id = fmt::format("{}-{:08x}{:08x}", request.is_chat ? "chatcmpl" : "cmpl", kRun, ++n_replies_ever_),
                 .created = unix_seconds(),
                 .model = request.model,
                 .fingerprint = fingerprint_,
                 .is_stream = request.stream,
                 .include_usage = request.include_usage,
                 .wants_logprobs = sampling.logprobs >= 0,
                 .only_one_call = !request.parallel_tool_calls,
                 .as_functions = request.as_functions,
                 .wants_prompt_logprobs = request.wants_prompt_logprobs,
                 .n_per_prompt = static_cast<size_t>(request.n_choices),
                 .echoed = request.echoed,
                 .stops = sampling.stop,
                 .stop_ids = sampling.stop_ids,
                 .decode_limit = decode_limit_,
                 .form = parts_.terms.form_for(request),
                 .warnings = request.warnings};
  auto reply = request.is_chat ? make_chat_reply(parts_.engine, std::move(head), n_choices)
                               : make_completion_reply(parts_.engine, std::move(head), n_choices);
  auto job = std::make_shared<Job>(parts_.engine, parts_.workers, std::move(reply), std::move(sink), std::move(ticket));
  parts_.jobs.add(job);
  return job;
}

void Generations::generate(const std::shared_ptr<http::Exchange>& exchange, bool is_chat) {
  const auto ticket = ticket_of(*exchange);
  const int32_t key = exchange->request().key;
  const auto body = parse_body(exchange->request().body);
  if (!body) return refuse(*exchange, *ticket, body.error());
  auto request = parts_.terms.read_generation(*body, is_chat);
  if (!request) return refuse(*exchange, *ticket, request.error());
  if (!ticket->try_hold(places_of(*request))) return refuse(*exchange, *ticket, parts_.places.no_room(key));
  parts_.terms.add_key(request->requests, key);
  auto sink = std::make_unique<HttpSink>(exchange, parts_.access.cors_headers(exchange->request()));
  const auto job = make_job(*request, std::move(sink), ticket);
  exchange->on_gone([job] { job->cancel(); });
  job->start(*request);
}

void Generations::embed(const std::shared_ptr<http::Exchange>& exchange) {
  const auto ticket = ticket_of(*exchange);
  const int32_t key = exchange->request().key;
  const auto body = parse_body(exchange->request().body);
  if (!body) return refuse(*exchange, *ticket, body.error());
  auto request = parse_embedding(*body, parts_.terms.limits());
  if (!request) return refuse(*exchange, *ticket, request.error());
  const auto n_at_once = static_cast<int64_t>(std::min(request->requests.size(), EmbeddingJob::kAtOnce));
  if (!ticket->try_hold(n_at_once)) return refuse(*exchange, *ticket, parts_.places.no_room(key));
  parts_.terms.add_key(request->requests, key);
  auto sink = std::make_unique<HttpSink>(exchange, parts_.access.cors_headers(exchange->request()));
  const auto job =
      std::make_shared<EmbeddingJob>(parts_.engine, parts_.workers, std::move(*request), std::move(sink), ticket);
  parts_.jobs.add(job);
  exchange->on_gone([job] { job->cancel(); });
  job->go_on();
}

}  // namespace candor::openai
