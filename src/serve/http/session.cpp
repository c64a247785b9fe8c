#include "serve/http/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <coroutine>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "serve/http/fair_budget.h"
#include "serve/http/request_parser.h"
#include "serve/http/text.h"
#include "serve/http/web_socket_session.h"

namespace candor::http {
namespace {

namespace beast = boost::beast;

bool is_well_formed_id(std::string_view id) {
  constexpr size_t kMaxBytes = 64;
  const auto is_ok = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_' ||
           c == '.';
  };
  return !id.empty() && id.size() <= kMaxBytes && std::ranges::all_of(id, is_ok);
}

HttpRequest head_of_request(const beast::http::request<beast::http::string_body>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const size_t mark = target.find('?');
  request.path = std::string(target.substr(0, mark));
  if (mark != std::string_view::npos) request.query = std::string(target.substr(mark + 1));
  for (const auto& field : message) {
    const std::string_view name(field.name_string().data(), field.name_string().size());
    request.headers.emplace_back(lower_case(name), std::string(field.value().data(), field.value().size()));
  }
  request.is_upgrade = lower_case(request.header("upgrade")) == "websocket";
  return request;
}

// Of the methods that are offered anywhere, and of those that are not.
bool may_have_body(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS" && method != "TRACE";
}

std::string chunk_of(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace

Session::Session(net::ip::tcp::socket socket, Network& network)
    : network_(network),
      id_(++network.n_sessions_ever),
      link_(std::move(socket), network.io, network.faults),
      reader_(link_, network) {
  network_.sessions.emplace(id_, this);
  ++network_.n_connections;
}

// Where it ended by an exception, what it was answering has lost its reader.
Session::~Session() {
  network_.sessions.erase(id_);
  network_.handshakes.erase(id_);
  --network_.n_connections;
  if (exchange_) guarded([this] { exchange_->mark_gone(); });
}

net::awaitable<void> Session::run() {
  bool goes_on = co_await shake_hands();
  while (goes_on) goes_on = co_await serve_one();
  if (link_.wire().is_open() && !link_.is_gone()) co_await link_.linger();
}

// True if another request may follow.
net::awaitable<bool> Session::serve_one() {
  HttpRequest request;
  RequestParser parser;
  const Read head = co_await reader_.read_head(parser);
  if (head == Read::kClosed) co_return false;
  if (head == Read::kWhole) request = head_of_request(parser.message());
  begin_request(request);
  if (head == Read::kRefused) {
    const HttpResponse response = fault_response();
    co_return co_await refuse(request, response);
  }
  if (auto refusal = handlers_refusal(request)) {
    parser.take_waiting(link_.buffer());
    refusal->must_close = refusal->must_close || !parser.is_done() || !parser.keep_alive();
    co_return co_await refuse(request, *refusal);
  }
  if (!parser.framing.is_empty() && !may_have_body(request.method)) {
    reader_.set_fault({400, "a body came with " + clipped(request.method) + ", which takes none"});
    const HttpResponse response = fault_response();
    co_return co_await refuse(request, response);
  }
  if (request.is_upgrade) {
    co_await upgrade(request, parser);
    co_return false;
  }
  const Read body = co_await reader_.read_body(parser, request.key);
  if (body == Read::kClosed) co_return false;
  if (body == Read::kRefused) {
    const HttpResponse response = fault_response();
    co_return co_await refuse(request, response);
  }
  request.body = std::move(parser.body_bytes);
  if (link_.buffer().size() == 0) link_.buffer().shrink_to_fit();
  const bool is_http_1_0 = parser.message().version() == 10;
  const std::function<void()> wake = [wakes = network_.wakes, id = id_] { wakes->add(id); };
  exchange_ =
      std::make_shared<Exchange>(std::move(request), network_.options.waiting_bytes, wake, std::move(parser.held));
  hand_over(exchange_);
  const bool goes_on = co_await reply(exchange_, parser.keep_alive(), is_http_1_0);
  exchange_.reset();
  co_return goes_on;
}

std::optional<HttpResponse> Session::handlers_refusal(HttpRequest& request) {
  try {
    return network_.handler.refuse(request);
  } catch (...) {
    network_.faults.note(FaultPlace::kHandler, std::current_exception());
    return response_to(std::current_exception());
  }
}

void Session::hand_over(const std::shared_ptr<Exchange>& exchange) {
  try {
    network_.handler.handle(exchange);
  } catch (...) {
    network_.faults.note(FaultPlace::kHandler, std::current_exception());
    exchange->respond(response_to(std::current_exception()));
  }
}

void Session::report(const HttpRequest& request, const ReplyRecord& record) const {
  guarded([&] { network_.handler.on_reply(request, record); });
}

void Session::begin_request(HttpRequest& request) const {
  const std::string_view given = request.header("x-request-id");
  request.id =
      is_well_formed_id(given) ? std::string(given) : fmt::format("req-{:x}-{}", id_, ++network_.n_requests_ever);
  request.arrived_ns = std::chrono::steady_clock::now().time_since_epoch().count();
}

HttpResponse Session::fault_response() const {
  const bool is_ours = reader_.fault().status >= 500;
  return error_response({is_ours ? ErrorKind::kInternal : ErrorKind::kInvalidInput, reader_.fault().message},
                        {.status = reader_.fault().status, .type = is_ours ? "server_error" : "invalid_request_error"});
}

// A reply that needs no handler; false unless the connection is still in step.
net::awaitable<bool> Session::refuse(const HttpRequest& request, const HttpResponse& response) {
  const HttpResponse reply = in_form_of(request, response);
  keep_alive_ =
      !request.method.empty() && !reply.must_close && !network_.is_draining && reader_.fault().message.empty();
  reader_.set_fault({});
  ReplyRecord record{.status = reply.status, .n_bytes = reply.body.size()};
  link_.set_deadline(network_.options.write_timeout);
  const std::string bytes = head_of(reply, false, request) + (request.method == "HEAD" ? "" : reply.body);
  record.was_cut = !co_await link_.write(bytes);
  link_.clear_deadline();
  report(request, record);
  co_return keep_alive_ && !record.was_cut;
}

net::awaitable<bool> Session::reply(const std::shared_ptr<Exchange>& exchange, bool keep_alive, bool is_http_1_0) {
  const HttpRequest& request = exchange->request();
  ReplyRecord record;
  keep_alive_ = keep_alive && !network_.is_draining;
  is_chunked_ = !is_http_1_0;
  link_.watch_for_end([this] { signal(); });
  const bool is_whole = co_await send_waiting(*exchange, request, record);
  link_.end_watch();
  record.was_cut = !is_whole;
  record.note = exchange->noted();
  if (!is_whole) {
    exchange->mark_gone();
    link_.wire().close();
    link_.mark_gone();
  } else {
    link_.stop_waiting();
  }
  const auto now_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  record.ms = static_cast<double>(now_ns - request.arrived_ns) * 1e-6;
  report(request, record);
  co_return is_whole&& keep_alive_;
}

// Until the reply is whole (true), or the client is gone or too slow.
net::awaitable<bool> Session::send_waiting(Exchange& exchange, const HttpRequest& request, ReplyRecord& record) {
  bool pings = false;
  while (true) {
    if (link_.is_gone() || exchange.is_cut()) co_return false;
    link_.forget_event();
    Exchange::Output output = exchange.take();
    std::string bytes;
    if (output.head) {
      record.status = output.head->status;
      pings = output.head->content_type == "text/event-stream";
      keep_alive_ = keep_alive_ && !output.head->must_close && (!output.is_stream || is_chunked_);
      bytes = head_of(*output.head, output.is_stream, request);
      if (!output.is_stream && request.method != "HEAD") bytes += output.head->body;
      record.n_bytes += output.head->body.size();
    }
    if (!output.bytes.empty()) bytes += is_chunked_ ? chunk_of(output.bytes) : output.bytes;
    record.n_bytes += output.bytes.size();
    if (output.is_last && output.is_stream && is_chunked_) bytes += "0\r\n\r\n";
    if (!bytes.empty()) {
      link_.set_deadline(network_.options.write_timeout);
      const bool is_sent = co_await link_.write(bytes);
      link_.clear_deadline();
      if (!is_sent) co_return false;
    }
    if (output.is_last) co_return true;
    bytes = std::string();  // waits may be long and many
    if (!co_await link_.next_event(network_.options.ping_interval) && pings) exchange.write(": ping\n\n");
  }
}

net::awaitable<void> Session::upgrade(HttpRequest& request, RequestParser& parser) {
  FairBudget::Share held = network_.handler.bytes().share_of(request.key);
  const std::function<void()> wake = [wakes = network_.wakes, id = id_] { wakes->add(id); };
  web_socket_ = std::make_shared<WebSocket>(std::move(request), network_.options.waiting_bytes, wake, std::move(held));
  WebSocketSession session(*this, web_socket_);
  co_await session.run(parser.message());
  link_.mark_gone();
}

std::string Session::head_of(const HttpResponse& response, bool is_stream, const HttpRequest& request) const {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  const auto add = [&head](std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
  };
  if (!response.content_type.empty()) add("content-type", response.content_type);
  if (!is_stream) {
    add("content-length", std::to_string(response.body.size()));
  } else if (is_chunked_) {
    add("transfer-encoding", "chunked");
  }
  if (!request.id.empty()) add("x-request-id", request.id);
  for (const auto& [name, value] : response.headers) add(name, value);
  if (!keep_alive_) add("connection", "close");
  return head + "\r\n";
}

void Session::signal() {
  link_.notify();
  if (on_signal_) on_signal_();
  if (exchange_ && exchange_->is_cut()) link_.stop_waiting();
  if (web_socket_ && web_socket_->is_cut()) abort();
}

void Session::close_if_idle() {
  if (web_socket_) {
    if (web_socket_->n_busy == 0 && close_web_socket_) close_web_socket_();
  } else if (reader_.is_idle() && !exchange_) {
    link_.stop_waiting();
  }
}

void Session::abort() {
  if (close_web_socket_) close_web_socket_();
  link_.close();
}

}  // namespace candor::http
