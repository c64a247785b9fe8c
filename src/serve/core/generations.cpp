#include "serve/core/generations.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>  // IWYU pragma: keep: parse_body() gives one
#include <random>
#include <string>
#include <utility>

#include "candor/request.h"
#include "serve/core/embedding_job.h"
#include "serve/core/http_sink.h"
#include "serve/core/reply.h"

namespace candor::serve {
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

std::string next_reply_number(std::atomic<uint64_t>& n_replies) {
  static const uint64_t kRun = std::random_device{}();
  return fmt::format("{:08x}{:08x}", kRun, ++n_replies);
}

Generations::Generations(const GenerationParts& parts, double read_limit)
    : parts_(parts),
      fingerprint_(fingerprint_of(parts.engine.info())),
      read_limit_(read_limit),
      decode_limit_(read_limit / static_cast<double>(std::max<uint64_t>(1, parts.engine.info().used_weight_bytes))) {}

std::shared_ptr<Job> Generations::make_job(const ApiRequest& request, std::string_view id_prefix,
                                           std::unique_ptr<Sink> sink, std::shared_ptr<Ticket> ticket) {
  const size_t n_choices = request.requests.size() * static_cast<size_t>(request.n_choices);
  const SamplingParams& sampling = request.requests.front().sampling;
  const std::string number = request.early ? request.early->number : next_reply_number(parts_.n_replies);
  ReplyHead head{.id = std::string(id_prefix) + number,
                 .number = number,
                 .created = request.early ? request.early->created : unix_seconds(),
                 .model = request.model,
                 .fingerprint = fingerprint_of(fingerprint_, parts_.engine, request.requests.front().adapters),
                 .is_stream = request.stream,
                 .n_early = request.early ? request.early->n_frames : 0,
                 .wants_logprobs = sampling.logprobs >= 0,
                 .only_one_call = !request.parallel_tool_calls,
                 .n_per_prompt = static_cast<size_t>(request.n_choices),
                 .stops = sampling.stop,
                 .stop_ids = sampling.stop_ids,
                 .decode_limit = decode_limit_,
                 .form = parts_.terms.form_for(request),
                 .warnings = request.warnings};
  auto reply = request.make_reply(parts_.engine, std::move(head), n_choices);
  auto job = std::make_shared<Job>(parts_.engine, parts_.workers, std::move(reply), std::move(sink), std::move(ticket));
  parts_.jobs.add(job);
  return job;
}

void Generations::generate(const std::shared_ptr<http::Exchange>& exchange, const Endpoint& endpoint) {
  const auto body = parse_body(exchange->request().body);
  if (!body) return answer(exchange, body.error(), endpoint);
  answer(exchange, endpoint.parse(*body, parts_.terms), endpoint);
}

void Generations::answer(const std::shared_ptr<http::Exchange>& exchange, Result<ApiRequest> request,
                         const Endpoint& endpoint) {
  const auto ticket = ticket_of(*exchange);
  const int32_t key = exchange->request().key;
  if (!request) return refuse(*exchange, *ticket, request.error());
  parts_.terms.settle(*request);
  if (!ticket->try_hold(places_of(*request))) return refuse(*exchange, *ticket, parts_.places.no_room(key));
  parts_.terms.add_key(request->requests, key);
  if (!request->keeps_adapters) parts_.terms.add_adapter(request->requests, request->model);
  request->early = ticket->early();
  if (!request->note.empty()) exchange->note(request->note);
  if (request->keep_alive && parts_.keep_alive) parts_.keep_alive(*request->keep_alive);
  auto sink = std::make_unique<HttpSink>(exchange, headers_of(*exchange, request->headers), endpoint.format);
  const auto job = make_job(*request, endpoint.id_prefix, std::move(sink), ticket);
  exchange->on_gone([job] { job->cancel(); });
  job->start(*request);
}

void Generations::embed(const std::shared_ptr<http::Exchange>& exchange, Result<EmbeddingRequest> request) {
  const auto ticket = ticket_of(*exchange);
  const int32_t key = exchange->request().key;
  if (!request) return refuse(*exchange, *ticket, request.error());
  const auto n_at_once = static_cast<int64_t>(std::min(request->requests.size(), EmbeddingJob::kAtOnce));
  if (!ticket->try_hold(n_at_once)) return refuse(*exchange, *ticket, parts_.places.no_room(key));
  parts_.terms.add_key(request->requests, key);
  parts_.terms.add_adapter(request->requests, request->model);
  if (!request->note.empty()) exchange->note(request->note);
  if (request->keep_alive && parts_.keep_alive) parts_.keep_alive(*request->keep_alive);
  auto sink = std::make_unique<HttpSink>(exchange, headers_of(*exchange, request->headers), StreamFormat::kLines);
  const auto job =
      std::make_shared<EmbeddingJob>(parts_.engine, parts_.workers, std::move(*request), std::move(sink), ticket);
  parts_.jobs.add(job);
  exchange->on_gone([job] { job->cancel(); });
  job->go_on();
}

http::Headers Generations::headers_of(const http::Exchange& exchange, const http::Headers& more) const {
  http::Headers headers = parts_.access.cors_headers(exchange.request());
  headers.insert(headers.end(), more.begin(), more.end());
  return headers;
}

}  // namespace candor::serve
