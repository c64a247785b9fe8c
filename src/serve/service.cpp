#include "serve/service.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/utf8.h"
#include "serve/batch/batch_store.h"
#include "serve/core/fields.h"
#include "serve/core/generations.h"
#include "serve/core/http_sink.h"
#include "serve/core/json_body.h"
#include "serve/core/model_form.h"
#include "serve/core/route_wait.h"
#include "serve/http/text.h"
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

void refuse_with(http::Exchange& exchange, const Error& error) {
  exchange.state.reset();
  exchange.respond(http::error_response(error));
  exchange.drop_body();
}

}  // namespace

Service::Service(ServiceOptions options, const obs::Log& log, const ModelsMaker& make_models)
    : options_(std::move(options)),
      apis_(interfaces(options_.has_page)),
      log_(log),
      faults_(log),
      access_(options_.access),
      places_(options_.n_places, access_.n_keys(), options_.max_per_key),
      bytes_(options_.inflight_bytes, access_.n_keys()),
      jobs_(faults_),
      models_(make_models({workers_, access_, places_, jobs_, bytes_, n_replies_}, options_)),
      sockets_(workers_, places_, *models_),
      core_{*models_, bytes_, metrics_, faults_, places_, access_, options_.steps, options_.batches, unix_seconds()},
      workers_({.n_threads = options_.n_workers, .max_waiting = options_.max_waiting, .n_keys = access_.n_keys()},
               faults_),
      ticker_([this](const std::stop_token& stop) { tick(stop); }) {
  if (options_.batches != nullptr)
    options_.batches->start(*this, [this](const std::string& owner) { return access_.key_with_id(owner); });
}

Service::Service(Engine& engine, ServiceOptions options, const obs::Log& log)
    : Service(std::move(options), log, [&](const ModelParts& parts, const ServiceOptions& all) {
        return std::make_unique<Models>(engine, all.limits, parts, all.read_limit, log);
      }) {}

Service::Service(ModelLoader& loader, ModelsOptions models, ServiceOptions options, const obs::Log& log)
    : Service(std::move(options), log, [&](const ModelParts& parts, const ServiceOptions& all) {
        return std::make_unique<Models>(loader, std::move(models), all.limits, parts, log);
      }) {}

void Service::say_forms() {
  for (const auto& [model, lease] : models_->loaded()) {
    if (const std::string& note = lease->engine.info().device_note; !note.empty()) log_.info(note);
    const ModelForm& form = lease->terms.model_form();
    const std::string_view name = text::to_string(form.output.tools);
    log_.info(name == "none" ? std::string("the model's chat template shows no form for calls of tools")
                             : fmt::format("calls of tools are read in the form {}", name));
    if (!form.own_fault.empty()) log_.warning(fmt::format("{}; it is not followed", form.own_fault));
  }
}

Service::~Service() {
  constexpr std::chrono::milliseconds kPoll{2};
  begin_drain();
  abort_all();
  while (n_jobs() > 0) std::this_thread::sleep_for(kPoll);
  models_->close();
}

void Service::begin_drain() {
  is_draining_ = true;
  if (options_.batches != nullptr) options_.batches->stop();
  models_->stop_loading();
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
  post(exchange, [this, route, exchange] { run(*route, exchange); });
}

void Service::post(const Shared& exchange, std::function<void()> run) {
  const auto drop = [exchange] {
    exchange->state.reset();
    exchange->respond(http::error_response(shutting_down()));
  };
  const bool is_large = exchange->request().body.size() > kLargeBodyBytes;
  if (workers_.try_post({std::move(run), drop, exchange->request().key, is_large})) return;
  exchange->state.reset();
  exchange->respond(http::error_response(too_many_waiting()));
}

void Service::run(const Route& route, const Shared& exchange) {
  try {
    if (route.handle != nullptr) return run_with_model(route, exchange);
    route.tell(core_, exchange);
  } catch (...) {
    faults_.note(http::FaultPlace::kHandler, std::current_exception());
    exchange->respond(http::response_to(std::current_exception()));
  }
  exchange->state.reset();
  exchange->drop_body();
}

// Where there is one model, the interface's own reader of bodies sees whether it is the one that was asked for.
void Service::run_with_model(const Route& route, const Shared& exchange) {
  if (models_->is_one()) {
    const auto lease = models_->acquire({}, nullptr);
    if (lease && route.method == "GET") {
      const std::string name = asked_model(route, exchange->request())->name;
      if (!name.empty() && !(*lease)->limits().knows(name)) return refuse_with(*exchange, model_not_found(name));
    }
    return lease ? handle_with(route, exchange, *lease) : refuse_with(*exchange, lease.error());
  }
  auto asked = asked_model(route, exchange->request());
  if (!asked) return refuse_with(*exchange, asked.error());
  const std::string name = asked->name;
  asked->reply_number = next_reply_number(n_replies_);
  const auto wait = std::make_shared<RouteWait>(
      exchange, route.loading, std::move(*asked), access_.cors_headers(exchange->request()),
      [this, route = &route, exchange](const ModelLease& lease) {
        post(exchange, [this, route, exchange, lease] { handle_with(*route, exchange, lease); });
      });
  jobs_.add(wait);
  exchange->on_gone([wait, models = models_.get()] {
    wait->cancel();
    models->leave(wait);
  });
  auto lease = models_->acquire(name, wait);
  const bool is_settled = !lease || *lease != nullptr;
  if (!is_settled || !wait->end()) return;
  return lease ? handle_with(route, exchange, *lease) : refuse_with(*exchange, lease.error());
}

// What is made of a body takes about three times as much again, until the engine has it.
void Service::handle_with(const Route& route, const Shared& exchange, const ModelLease& lease) {
  http::FairBudget::Share parsed = bytes_.share_of(exchange->request().key);
  parsed.grow(3 * static_cast<int64_t>(exchange->request().body.size()));
  try {
    if (route.generates) std::static_pointer_cast<PlaceTicket>(exchange->state)->keep(lease);
    route.handle(*lease, exchange);
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
  models_->stop_preparing();
  jobs_.abort_all(shutting_down());
}

}  // namespace candor::serve
