#include "serve/service.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/utf8.h"
#include "serve/http/text.h"
#include "serve/core/http_sink.h"
#include "serve/interfaces.h"

namespace candor::serve {
namespace {

using http::HttpRequest;
using http::HttpResponse;

constexpr size_t kLargeBodyBytes = 256 * 1024;

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

Error shutting_down() {
  return {ErrorKind::kCancelled, "the server is shutting down"};
}

}  // namespace

Service::Service(Engine& engine, ServiceOptions options, const obs::Log& log)
    : engine_(engine),
      options_(std::move(options)),
      apis_(interfaces(options_.has_page)),
      log_(log),
      faults_(log),
      access_(options_.access),
      places_(options_.n_places, access_.n_keys(), options_.max_per_key),
      bytes_(options_.inflight_bytes, access_.n_keys()),
      terms_(engine, options_.limits),
      jobs_(faults_),
      generations_({engine, workers_, access_, terms_, places_, jobs_}, options_.read_limit),
      sockets_(workers_, terms_, places_, generations_),
      core_{engine, terms_, generations_, bytes_, metrics_, faults_, places_, options_.steps, options_.read_limit,
            unix_seconds()},
      workers_({.n_threads = options_.n_workers, .max_waiting = options_.max_waiting, .n_keys = access_.n_keys()},
               faults_),
      ticker_([this](const std::stop_token& stop) { tick(stop); }) {}

void Service::say_forms() const {
  const ModelForm& form = terms_.model_form();
  const std::string_view name = text::to_string(form.output.tools);
  log_.info(name == "none" ? std::string("the model's chat template shows no form for calls of tools")
                           : fmt::format("calls of tools are read in the form {}", name));
  if (!form.own_fault.empty()) log_.warning(fmt::format("{}; it is not followed", form.own_fault));
}

Service::~Service() {
  constexpr std::chrono::milliseconds kPoll{2};
  is_draining_ = true;
  abort_all();
  while (n_jobs() > 0) std::this_thread::sleep_for(kPoll);
}

void Service::tick(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stopped.wait_for(lock, stop, options_.quiet / 4, [&] { return stop.stop_requested(); }))
    jobs_.tick(options_.quiet);
}

std::optional<HttpResponse> Service::refuse(HttpRequest& request) {
  bool is_path_known = false;
  const Route* route = find_route(apis_, request, is_path_known);
  request.error_form = error_form_at(request);
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
  if (!route->refusal.empty()) return http::error_response({ErrorKind::kUnsupported, std::string(route->refusal)});
  if (is_draining_ && route->needs_key) {
    return http::error_response(shutting_down());
  }
  if (route->is_socket && !request.is_upgrade) {
    return http::error_response({ErrorKind::kInvalidInput, "this is a WebSocket: ask with Upgrade: websocket"});
  }
  if (!route->is_socket && request.is_upgrade)
    return http::error_response({ErrorKind::kInvalidInput, "there is no WebSocket here"});
  if (auto refusal = refuse_body(request)) return refusal;
  if (!route->generates || places_.has_room(request.key)) return std::nullopt;
  return http::error_response(places_.no_room(request.key));
}

// A generation's place is taken before it waits to be read: a crowd that is read to the last only to be refused waits
// for it.
void Service::handle(std::shared_ptr<http::Exchange> exchange) {
  bool is_path_known = false;
  const Route* route = find_route(apis_, exchange->request(), is_path_known);
  if (route->is_quick) return run(*route, exchange);
  const int32_t key = exchange->request().key;
  if (route->generates) {
    exchange->state = places_.take(key);
    if (!exchange->state) return exchange->respond(http::error_response(places_.no_room(key)));
  }
  const auto drop = [this, exchange] {
    exchange->state.reset();
    exchange->respond(http::error_response(shutting_down()));
  };
  const bool is_large = exchange->request().body.size() > kLargeBodyBytes;
  if (workers_.try_post({[this, route, exchange] { run(*route, exchange); }, drop, key, is_large})) return;
  exchange->state.reset();
  exchange->respond(http::error_response(too_many_waiting()));
}

// What is made of a body takes about three times as much again, until the engine has it.
void Service::run(const Route& route, const std::shared_ptr<http::Exchange>& exchange) {
  http::FairBudget::Share parsed = bytes_.share_of(exchange->request().key);
  parsed.grow(3 * static_cast<int64_t>(exchange->request().body.size()));
  try {
    route.handle(core_, exchange);
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
  log_.info(fmt::format("{} {} {} {} {} {} bytes {:.1f} ms{}{}{}", request.id, access_.key_name(request.key),
                        request.method, request.path, record.status, record.n_bytes, record.ms,
                        record.was_cut ? " cut" : "", record.note.empty() ? "" : " ", record.note));
}

void Service::abort_all() {
  workers_.drop_waiting();
  engine_.stop_preparing();
  jobs_.abort_all(shutting_down());
}

}  // namespace candor::serve
