#include "serve/openai/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <utility>

#include "base/utf8.h"
#include "serve/http/text.h"
#include "serve/openai/embedding_job.h"
#include "serve/openai/http_sink.h"

namespace candor::openai {
namespace {

using http::HttpRequest;
using http::HttpResponse;

constexpr size_t kLargeBodyBytes = 256 * 1024;

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
        {ErrorKind::kUnsupported, "the body is encoded (" + clipped(encoding) + "), expected plain JSON"},
        {.status = 415});
  }
  const bool is_page = !request.header("origin").empty();
  if (request.method != "POST" || !is_page || is_json(request.header("content-type"))) return std::nullopt;
  return http::error_response(
      {ErrorKind::kUnsupported, "the content type of a web page's request must be application/json"}, {.status = 415});
}

}  // namespace

// The places of one request, from when it is let in.
struct Service::Places final : Ticket {
  Places(http::FairBudget::Share places, std::atomic<int32_t>& n_jobs) : share(std::move(places)), n_in_work(n_jobs) {
    ++n_in_work;
  }
  ~Places() override {
    free_places();
    --n_in_work;  // last: the service may end
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  void free_places() noexcept override { share.resize(0); }

  http::FairBudget::Share share;
  std::atomic<int32_t>& n_in_work;
};

Service::Service(Engine& engine, ServiceOptions options, const obs::Log& log)
    : engine_(engine),
      options_(std::move(options)),
      log_(log),
      faults_(log),
      access_(options_.access),
      places_(options_.n_places, access_.n_keys(), options_.max_per_key),
      bytes_(options_.inflight_bytes, access_.n_keys()),
      fingerprint_(fingerprint_of(engine.info())),
      created_(unix_seconds()),
      form_(probe_model_form(engine)),
      decode_limit_(options_.read_limit / static_cast<double>(std::max<uint64_t>(1, engine.info().weight_bytes))),
      workers_({.n_threads = options_.n_workers, .max_waiting = options_.max_waiting, .n_keys = access_.n_keys()},
               faults_) {}

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
      return http::error_response({ErrorKind::kUnsupported, clipped(request.method) + " is not offered at " + path},
                                  {.status = 405});
    return http::error_response({ErrorKind::kNotFound, "there is nothing at " + path});
  }
  if (is_draining_ && route->needs_key) {
    return shutting_down();
  }
  if (route->is_socket && !request.is_upgrade) {
    return http::error_response({ErrorKind::kInvalidInput, "this is a WebSocket: ask with Upgrade: websocket"});
  }
  if (!route->is_socket && request.is_upgrade)
    return http::error_response({ErrorKind::kInvalidInput, "there is no WebSocket here"});
  if (auto refusal = refuse_body(request)) return refusal;
  return route->generates ? refuse_for_room(request.key) : std::nullopt;
}

HttpResponse Service::shutting_down() const {
  return http::error_response({ErrorKind::kCancelled, "the server is shutting down"});
}

std::optional<HttpResponse> Service::refuse_for_room(int32_t key) const {
  if (places_.has_room(key, 1)) return std::nullopt;
  return http::error_response(no_room(key));
}

Error Service::no_room(int32_t key) const {
  const bool is_full = places_.used() >= places_.limit();
  const std::string all = fmt::format("{} answers are in work or waiting, at most {}", places_.used(), places_.limit());
  return {.kind = is_full ? ErrorKind::kOverloaded : ErrorKind::kRateLimited,
          .message = is_full
                         ? "the engine is full: " + all + "; try again later"
                         : fmt::format("{} has as many answers in work as it may ({} at most, and less while others "
                                       "ask as well): {}; try again later",
                                       key < 0 ? "who comes without a key" : "this key", places_.most_per_key(), all)};
}

// A generation's place is taken before it waits to be read: a crowd that is read to the last only to be refused waits
// for it.
void Service::handle(std::shared_ptr<Exchange> exchange) {
  bool is_path_known = false;
  const Route* route = find_route(exchange->request(), is_path_known);
  if (route->is_quick) return run(*route, exchange);
  const int32_t key = exchange->request().key;
  if (route->generates) {
    exchange->state = take_ticket(key);
    if (!exchange->state) return exchange->respond(http::error_response(no_room(key)));
  }
  const auto drop = [this, exchange] {
    exchange->state.reset();
    exchange->respond(shutting_down());
  };
  const bool is_large = exchange->request().body.size() > kLargeBodyBytes;
  if (workers_.try_post({[this, route, exchange] { run(*route, exchange); }, drop, key, is_large})) return;
  exchange->state.reset();
  exchange->respond(http::error_response(too_many_waiting()));
}

// What is made of a body takes about three times as much again, until the engine has it.
void Service::run(const Route& route, const Shared& exchange) {
  http::FairBudget::Share parsed = bytes_.share_of(exchange->request().key);
  parsed.grow(3 * static_cast<int64_t>(exchange->request().body.size()));
  try {
    (this->*route.handle)(*exchange, exchange);
  } catch (...) {
    faults_.note(http::FaultPlace::kHandler, std::current_exception());
    exchange->respond(http::response_to(std::current_exception()));
  }
  exchange->state.reset();
  exchange->drop_body();
}

void Service::on_reply(const HttpRequest& request, const http::ReplyRecord& record) {
  metrics_.count_reply(record.status);
  if (!log_.is_on(obs::LogLevel::kInfo)) return;
  log_.info(fmt::format("{} {} {} {} {} {} bytes {:.1f} ms{}", request.id, access_.key_name(request.key),
                        request.method, request.path, record.status, record.n_bytes, record.ms,
                        record.was_cut ? " cut" : ""));
}

std::shared_ptr<Service::Places> Service::take_ticket(int32_t key) {
  http::FairBudget::Share places = places_.share_of(key);
  if (!places.try_grow(1)) return nullptr;
  return std::make_shared<Places>(std::move(places), n_jobs_);
}

// The places of all its answers; it has one.
bool Service::take_places(const ApiRequest& request, Places& ticket) {
  int64_t n = 0;
  for (const Request& one : request.requests) n += one.beams ? std::max(one.beams->width, one.n) : one.n;
  return ticket.share.try_grow(n - ticket.share.amount());
}

std::shared_ptr<Job> Service::make_job(const ApiRequest& request, std::unique_ptr<Sink> sink,
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
                 .form = form_for(request),
                 .warnings = request.warnings};
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

void Service::settle_for_template(ApiRequest& request) const {
  if (request.has_tools && !form_.shows_tools)
    request.warnings.push_back("the model's chat template does not show tools to the model");
  bool was_developer = false;
  for (Request& one : request.requests) {
    auto* chat = std::get_if<ChatPrompt>(&one.prompt);
    if (chat == nullptr || form_.knows_developer) continue;
    for (Message& message : chat->messages) {
      if (message.role != "developer") continue;
      message.role = "system";
      was_developer = true;
    }
  }
  if (was_developer)
    request.warnings.push_back("the model's chat template does not know the role developer; it is read as system");
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
  workers_.drop_waiting();
  engine_.stop_preparing();
  std::list<std::weak_ptr<Work>> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(jobs_);
  }
  for (const auto& weak : jobs) {
    const auto job = weak.lock();
    if (!job) continue;
    try {
      job->abort({ErrorKind::kCancelled, "the server is shutting down"});
    } catch (...) {
      faults_.note(http::FaultPlace::kReply, std::current_exception());
    }
  }
}

void Service::generate(const Shared& exchange, bool is_chat) {
  const auto ticket = std::static_pointer_cast<Places>(std::exchange(exchange->state, nullptr));
  const auto refuse_with = [&](const Error& error) {
    ticket->free_places();
    exchange->respond(http::error_response(error));
  };
  const auto body = parse_body(exchange->request().body);
  if (!body) return refuse_with(body.error());
  auto request = is_chat ? parse_chat(*body, options_.limits) : parse_completion(*body, options_.limits);
  if (!request) return refuse_with(request.error());
  settle_for_template(*request);
  if (const auto read = read_echo(engine_, *request); !read) return refuse_with(read.error());
  if (!take_places(*request, *ticket)) return refuse_with(no_room(exchange->request().key));
  add_terms(request->requests, exchange->request().key);
  const auto job = make_job(*request, std::make_unique<HttpSink>(exchange, access_.cors_headers(exchange->request())),
                            ticket);
  exchange->on_gone([job] { job->cancel(); });
  job->start(*request);
}

void Service::embeddings(Exchange& exchange, const Shared& shared) {
  const auto ticket = std::static_pointer_cast<Places>(std::exchange(exchange.state, nullptr));
  const auto refuse_with = [&](const Error& error) {
    ticket->free_places();
    exchange.respond(http::error_response(error));
  };
  const auto body = parse_body(exchange.request().body);
  if (!body) return refuse_with(body.error());
  auto request = parse_embedding(*body, options_.limits);
  if (!request) return refuse_with(request.error());
  const auto n_at_once = static_cast<int64_t>(std::min(request->requests.size(), EmbeddingJob::kAtOnce));
  if (!ticket->share.try_grow(n_at_once - 1)) return refuse_with(no_room(exchange.request().key));
  add_terms(request->requests, exchange.request().key);
  auto sink = std::make_unique<HttpSink>(shared, access_.cors_headers(exchange.request()));
  const auto job = std::make_shared<EmbeddingJob>(engine_, workers_, std::move(*request), std::move(sink), ticket);
  keep(job);
  exchange.on_gone([job] { job->cancel(); });
  job->go_on();
}

}  // namespace candor::openai
