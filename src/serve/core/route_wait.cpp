#include "serve/core/route_wait.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "serve/core/answer_slots.h"
#include "serve/core/generations.h"
#include "serve/core/http_sink.h"
#include "serve/core/json_body.h"
#include "serve/http/text.h"

namespace candor::serve {
namespace {

std::string text_of(const Json& body, const char* name) {
  const auto it = body.find(name);
  return it != body.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace

Result<AskedModel> asked_model(const Route& route, const http::HttpRequest& request) {
  AskedModel asked;
  if (route.method == "GET") {
    asked.name = http::query_value(request.query, "model").value_or("");
    return asked;
  }
  const auto body = parse_any_body(request.body);
  if (!body) return body.error();
  if (!body->is_object()) return asked;
  asked.name = text_of(*body, "model");
  if (asked.name.empty()) asked.name = text_of(*body, "name");
  const auto stream = body->find("stream");
  const bool is_stated = stream != body->end() && stream->is_boolean();
  asked.is_stream = route.loading.words != nullptr && (is_stated ? stream->get<bool>() : route.loading.streams_unasked);
  return asked;
}

bool RouteWait::end() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(is_over_, true);
}

void RouteWait::on_model(Result<ModelLease> lease) {
  if (!end()) return;
  if (lease) return answer_(*lease);
  exchange_->state.reset();
  exchange_->respond(http::error_response(lease.error()));
}

void RouteWait::cancel() {
  if (end()) exchange_->state.reset();
}

void RouteWait::abort(const Error& error) {
  on_model(error);
}

void RouteWait::open() {
  early_ = std::make_shared<EarlyStream>(
      EarlyStream{.model = asked_.name, .number = asked_.reply_number, .created = unix_seconds()});
  std::static_pointer_cast<PlaceTicket>(exchange_->state)->set_early(early_);
  open_before_reply(*exchange_, headers_, form_, early_);
}

void RouteWait::tick(std::chrono::milliseconds quiet) {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (is_over_ || !asked_.is_stream || now - last_event_ < quiet) return;
  last_event_ = now;
  if (early_ == nullptr) open();
  exchange_->write(form_.words(*early_));
  ++early_->n_frames;
}

}  // namespace candor::serve
