#include "serve/openai/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "serve/http/text.h"
#include "serve/openai/embedding_job.h"
#include "serve/openai/http_sink.h"

namespace candor::openai {
namespace {

using http::HttpRequest;
using http::HttpResponse;

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_json(std::string_view content_type) {
  return http::lower_case(http::trimmed(content_type.substr(0, content_type.find(';')))) == "application/json";
}

std::optional<HttpResponse> refuse_body(const HttpRequest& request) {
  const std::string encoding = http::lower_case(request.header("content-encoding"));
  if (!encoding.empty() && encoding != "identity") {
    return http::error_response(
        {.status = 415, .message = "the body is encoded (" + encoding + "), expected plain JSON"});
  }
  const bool is_page = !request.header("origin").empty();
  if (request.method != "POST" || !is_page || is_json(request.header("content-type"))) return std::nullopt;
  return http::error_response(
      {.status = 415, .message = "the content type of a web page's request must be application/json"});
}

}  // namespace

Service::Service(Engine& engine, ServiceOptions options, const obs::Log& log)
    : engine_(engine),
      options_(std::move(options)),
      log_(log),
      access_(options_.access),
      fingerprint_(fingerprint_of(engine.info())),
      created_(unix_seconds()),
      form_(probe_model_form(engine)),
      decode_limit_(options_.read_limit / static_cast<double>(std::max<uint64_t>(1, engine.info().weight_bytes))),
      jobs_of_key_(access_.n_keys() + 1),
      workers_(options_.n_workers, options_.max_waiting) {}

Service::~Service() {
  constexpr std::chrono::milliseconds kPoll{2};
  is_draining_ = true;
  abort_all();
  while (n_jobs_ > 0) std::this_thread::sleep_for(kPoll);
}

std::span<const Service::Route> Service::routes() {
  static constexpr Route kRoutes[] = {
      {.method = "GET", .path = "/health", .needs_key = false, .is_quick = true, .handle = &Service::health},
      {.method = "GET", .path = "/ready", .is_quick = true, .handle = &Service::ready},
      {.method = "GET", .path = "/metrics", .handle = &Service::metrics},
      {.method = "GET", .path = "/v1/models", .handle = &Service::models},
      {.method = "GET", .path = "/v1/models/", .handle = &Service::model},
      {.method = "POST", .path = "/v1/chat/completions", .generates = true, .handle = &Service::chat},
      {.method = "POST", .path = "/v1/completions", .generates = true, .handle = &Service::completions},
      {.method = "POST", .path = "/v1/embeddings", .generates = true, .handle = &Service::embeddings},
      {.method = "POST", .path = "/tokenize", .handle = &Service::tokenize},
      {.method = "POST", .path = "/detokenize", .handle = &Service::detokenize},
      {.method = "POST", .path = "/apply-template", .handle = &Service::apply_template},
      {.method = "GET", .path = "/v1/stream", .is_socket = true},
  };
  return kRoutes;
}

const Service::Route* Service::find_route(const HttpRequest& request, bool& is_path_known) const {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  is_path_known = false;
  for (const Route& route : routes()) {
    const bool is_prefix = route.path.ends_with('/');
    const bool fits = is_prefix ? request.path.starts_with(route.path) && request.path.size() > route.path.size()
                                : request.path == route.path;
    if (!fits) continue;
    is_path_known = true;
    if (route.method == method) return &route;
  }
  return nullptr;
}

std::optional<HttpResponse> Service::refuse(HttpRequest& request) {
  bool is_path_known = false;
  const Route* route = find_route(request, is_path_known);
  if (auto refusal = access_.refuse(request, route == nullptr || route->needs_key)) return refusal;
  if (request.method == "OPTIONS")
    return HttpResponse{.status = 204, .content_type = {}, .headers = access_.cors_headers(request)};
  if (route == nullptr) {
    const std::string path = shown(Json(request.path));
    if (is_path_known)
      return http::error_response({.status = 405, .message = request.method + " is not offered at " + path});
    return http::error_response({.status = 404, .message = "there is nothing at " + path});
  }
  if (is_draining_ && route->needs_key) {
    return http::error_response({.status = 503, .message = "the server is shutting down", .type = "server_error"});
  }
  if (route->is_socket && !request.is_upgrade) {
    return http::error_response({.message = "this is a WebSocket: ask with Upgrade: websocket"});
  }
  if (!route->is_socket && request.is_upgrade) return http::error_response({.message = "there is no WebSocket here"});
  if (auto refusal = refuse_body(request)) return refusal;
  return route->generates ? refuse_for_room() : std::nullopt;
}

// Those that wait to be read take room as well: a crowd that is read to the last only to be refused waits for it.
std::optional<HttpResponse> Service::refuse_for_room() {
  const auto room = engine_.check_room(n_being_read_);
  if (room) return std::nullopt;
  return http::error_response(to_api_error(room.error()));
}

void Service::handle(std::shared_ptr<Exchange> exchange) {
  bool is_path_known = false;
  const Route* route = find_route(exchange->request(), is_path_known);
  if (route->is_quick) return run(*route, exchange);
  if (route->generates) {
    if (auto refusal = refuse_for_room()) return exchange->respond(std::move(*refusal));
  }
  const int32_t n_taken = route->generates ? 1 : 0;
  n_being_read_ += n_taken;
  const auto read = [this, route, exchange, n_taken] {
    n_being_read_ -= n_taken;
    run(*route, exchange);
  };
  if (workers_.try_post(read)) return;
  n_being_read_ -= n_taken;
  exchange->respond(http::error_response(
      {.status = 503, .message = "too many requests wait to be read; try again", .type = "server_error"}));
}

void Service::run(const Route& route, const Shared& exchange) {
  try {
    (this->*route.handle)(*exchange, exchange);
  } catch (const std::bad_alloc&) {
    exchange->respond(http::error_response({.status = 503, .message = "memory ran out", .type = "server_error"}));
  } catch (const std::exception& error) {
    log_.error(fmt::format("{} {}: {}", exchange->request().id, exchange->request().path, error.what()));
    exchange->respond(
        http::error_response({.status = 500, .message = "a fault of the server", .type = "server_error"}));
  }
}

void Service::on_reply(const HttpRequest& request, const http::ReplyRecord& record) {
  metrics_.count_reply(record.status);
  if (!log_.is_on(obs::LogLevel::kInfo)) return;
  log_.info(fmt::format("{} {} {} {} {} {} bytes {:.1f} ms{}", request.id, access_.key_name(request.key),
                        request.method, request.path, record.status, record.n_bytes, record.ms,
                        record.was_cut ? " cut" : ""));
}

std::shared_ptr<void> Service::take_ticket(int32_t key) {
  std::atomic<int32_t>& of_key = key < 0 ? jobs_of_key_.back() : jobs_of_key_[static_cast<size_t>(key)];
  if (++of_key > options_.max_per_key) {
    --of_key;
    return nullptr;
  }
  ++n_jobs_;
  return {this, [this, &of_key](void*) {
            --of_key;
            --n_jobs_;
          }};
}

std::shared_ptr<Job> Service::make_job(const ApiRequest& request, std::unique_ptr<Sink> sink,
                                       std::shared_ptr<void> ticket) {
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
                 .form = form_for(request),
                 .warnings = request.warnings};
  if (request.has_tools && !form_.shows_tools) {
    head.warnings.push_back("the model's chat template does not show tools to the model");
  }
  auto reply = request.is_chat ? make_chat_reply(engine_, std::move(head), n_choices)
                               : make_completion_reply(engine_, std::move(head), n_choices);
  auto job = std::make_shared<Job>(engine_, workers_, std::move(reply), std::move(sink), std::move(ticket));
  keep(job);
  return job;
}

void Service::keep(const std::shared_ptr<Work>& work) {
  const std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [](const std::weak_ptr<Work>& old) { return old.expired(); });
  jobs_.push_back(work);
}

text::OutputForm Service::form_for(const ApiRequest& request) const {
  text::OutputForm form = form_.output;
  const Request& first = request.requests.front();
  if (const auto* chat = std::get_if<ChatPrompt>(&first.prompt); chat != nullptr && !chat->kwargs_json.empty()) {
    form.opens_in_reasoning = form.has_reasoning && opens_reasoning(engine_, *chat);
  }
  // A constraint holds from the first token on, or behind reasoning that the prompt or the model opens.
  if (first.constraint) {
    form.tools = request.must_call ? text::ToolForm::kLlama : text::ToolForm::kNone;
    form.has_reasoning = form.opens_in_reasoning || first.constraint->may_reason_first;
    return form;
  }
  if (!request.has_tools && form.tools != text::ToolForm::kGptOss) form.tools = text::ToolForm::kNone;
  return form;
}

// Turns are shared fairly between keys, and no key learns from the prefix cache what another has asked. In a chat, a
// model whose template knows reasoning may reason before a constrained answer.
void Service::add_terms(std::vector<Request>& requests, int32_t key) const {
  for (Request& one : requests) {
    if (one.constraint && std::holds_alternative<ChatPrompt>(one.prompt)) {
      one.constraint->may_reason_first = form_.output.has_reasoning;
    }
    one.scheduling.fair_key = std::to_string(key);
    one.scheduling.cache_scope = fmt::format("{}:{}", key, one.scheduling.cache_scope);
  }
}

void Service::abort_all() {
  std::list<std::weak_ptr<Work>> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(jobs_);
  }
  for (const auto& weak : jobs) {
    if (const auto job = weak.lock()) {
      job->abort({.status = 503, .message = "the server is shutting down", .type = "server_error"});
    }
  }
}

void Service::generate(const Shared& exchange, bool is_chat) {
  const auto body = parse_body(exchange->request().body);
  if (!body) return exchange->respond(http::error_response(body.error()));
  auto request = is_chat ? parse_chat(*body, options_.limits) : parse_completion(*body, options_.limits);
  if (!request) return exchange->respond(http::error_response(request.error()));
  if (const auto read = read_echo(engine_, *request); !read)
    return exchange->respond(http::error_response(read.error()));
  auto ticket = take_ticket(exchange->request().key);
  if (!ticket) return exchange->respond(http::error_response(too_many(options_.max_per_key)));
  add_terms(request->requests, exchange->request().key);
  const auto job = make_job(*request, std::make_unique<HttpSink>(exchange, access_.cors_headers(exchange->request())),
                            std::move(ticket));
  exchange->on_gone([job] { job->cancel(); });
  job->start(*request);
}

void Service::embeddings(Exchange& exchange, const Shared& shared) {
  const auto body = parse_body(exchange.request().body);
  if (!body) return exchange.respond(http::error_response(body.error()));
  auto request = parse_embedding(*body, options_.limits);
  if (!request) return exchange.respond(http::error_response(request.error()));
  auto ticket = take_ticket(exchange.request().key);
  if (!ticket) return exchange.respond(http::error_response(too_many(options_.max_per_key)));
  add_terms(request->requests, exchange.request().key);
  auto sink = std::make_unique<HttpSink>(shared, access_.cors_headers(exchange.request()));
  const auto job = std::make_shared<EmbeddingJob>(engine_, workers_, std::move(*request), std::move(sink), ticket);
  keep(job);
  exchange.on_gone([job] { job->cancel(); });
  job->advance();
}

}  // namespace candor::openai
