#include "serve/http/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <coroutine>
#include <cstddef>
#include <new>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "serve/http/body_scanner.h"
#include "serve/http/fair_budget.h"
#include "serve/http/session_parser.h"
#include "serve/http/text.h"
#include "serve/http/web_socket_session.h"

namespace candor::http {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;
constexpr size_t kReadBytes = 4096;
constexpr size_t kBodyReadBytes = 64 * 1024;
constexpr size_t kLeastBodyBytes = 64 * 1024;  // in each kBodyWindow
constexpr std::chrono::milliseconds kBodyWindow{15'000};
constexpr size_t kMaxPipelinedBytes = 64 * 1024;
constexpr size_t kMaxLingerBytes = 64u << 20;
constexpr std::chrono::milliseconds kLinger{2000};

std::string_view bytes_in(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

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
      socket_(std::move(socket)),
      deadline_(network.io),
      event_(network.io) {
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
  if (socket_.is_open() && !is_client_gone_) co_await linger();
}

// True if another request may follow.
net::awaitable<bool> Session::serve_one() {
  HttpRequest request;
  Parser parser;
  const Read head = co_await read_head(parser);
  if (head == Read::kClosed) co_return false;
  if (head == Read::kWhole) request = head_of_request(parser.message());
  begin_request(request);
  if (head == Read::kRefused) {
    const HttpResponse response = fault_response();
    co_return co_await refuse(request, response);
  }
  if (auto refusal = handlers_refusal(request)) {
    parser.take_waiting(buffer_);
    refusal->must_close = refusal->must_close || !parser.is_done() || !parser.keep_alive();
    co_return co_await refuse(request, *refusal);
  }
  if (!parser.framing.is_empty() && !may_have_body(request.method)) {
    fault_ = {400, "a body came with " + clipped(request.method) + ", which takes none"};
    const HttpResponse response = fault_response();
    co_return co_await refuse(request, response);
  }
  if (request.is_upgrade) {
    co_await upgrade(request, parser);
    co_return false;
  }
  const Read body = co_await read_body(parser, request.key);
  if (body == Read::kClosed) co_return false;
  if (body == Read::kRefused) {
    const HttpResponse response = fault_response();
    co_return co_await refuse(request, response);
  }
  request.body = std::move(parser.body_bytes);
  if (buffer_.size() == 0) buffer_.shrink_to_fit();
  const bool is_http_1_0 = parser.message().version() == 10;
  const std::function<void()> wake = [wakes = network_.wakes, id = id_] { wakes->add(id); };
  exchange_ = std::make_shared<Exchange>(std::move(request), network_.options.waiting_bytes, wake,
                                         std::move(parser.held));
  hand_over(exchange_);
  const bool goes_on = co_await reply(exchange_, parser.keep_alive(), is_http_1_0);
  exchange_.reset();
  co_return goes_on;
}

net::awaitable<Session::Read> Session::read_head(Parser& parser) {
  HeadScanner scanner(network_.options.head);
  is_idle_ = buffer_.size() == 0;
  if (is_idle_ && network_.is_draining) co_return Read::kClosed;
  set_deadline(is_idle_ ? network_.options.idle_timeout : network_.options.head_timeout);
  HeadScanner::State state = scanner.scan(bytes_in(buffer_));
  while (state == HeadScanner::State::kMore) {
    const auto [error, n_read] = co_await socket_.async_read_some(buffer_.prepare(kReadBytes), kTuple);
    if (error && has_expired_ && !is_idle_) {
      fault_ = {408, "the request head did not arrive in time"};
      co_return Read::kRefused;
    }
    if (error) co_return Read::kClosed;
    buffer_.commit(n_read);
    if (is_idle_) set_deadline(network_.options.head_timeout);
    is_idle_ = false;
    state = scanner.scan(bytes_in(buffer_));
  }
  clear_deadline();
  if (state == HeadScanner::State::kWhole) {
    const std::optional<HeadFault> fault = parser.take_head(bytes_in(buffer_).substr(0, scanner.head_bytes()),
                                                            scanner.body(), network_.options.body_bytes);
    buffer_.consume(scanner.head_bytes());
    if (!fault) co_return Read::kWhole;
    fault_ = *fault;
  } else {
    fault_ = scanner.fault();
  }
  co_return Read::kRefused;
}

net::awaitable<Session::Read> Session::read_body(Parser& parser, int32_t key) {
  parser.held = network_.handler.bytes().share_of(key);
  if (parser.is_done()) co_return Read::kWhole;
  if (!begin_body(parser)) co_return Read::kRefused;
  parser.body_end = std::chrono::steady_clock::now() + network_.options.body_timeout;
  wait_for_body(parser);
  if (lower_case(std::string(parser.message()[beast::http::field::expect])) == "100-continue") {
    const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!co_await write(go_on)) co_return Read::kClosed;
  }
  while (take_body(parser)) {
    const auto [error, n_read] = co_await socket_.async_read_some(buffer_.prepare(kBodyReadBytes), kTuple);
    if (error && has_expired_ && goes_on(parser)) {
      wait_for_body(parser);
      continue;
    }
    if (error && has_expired_) {
      fault_ = {408, "the request body did not arrive in time"};
      co_return Read::kRefused;
    }
    if (error) {
      is_client_gone_ = true;
      co_return Read::kClosed;
    }
    buffer_.commit(n_read);
  }
  clear_deadline();
  co_return fault_.message.empty() ? Read::kWhole : Read::kRefused;
}

// A large body holds room that others may want from its head on: it has to come, or to come faster than this.
void Session::wait_for_body(Parser& parser) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(parser.body_end -
                                                                          std::chrono::steady_clock::now());
  const bool is_large = parser.framing.n_bytes > kLeastBodyBytes;
  parser.n_at_deadline = parser.body_bytes.size();
  set_deadline(is_large ? std::min(left, kBodyWindow) : left);
}

bool Session::goes_on(const Parser& parser) {
  return parser.body_bytes.size() >= parser.n_at_deadline + kLeastBodyBytes &&
         std::chrono::steady_clock::now() < parser.body_end;
}

// Room for all of a body whose size is known. False, with the fault, where there is none.
bool Session::begin_body(Parser& parser) {
  try {
    if (!parser.held.try_grow(static_cast<int64_t>(parser.framing.n_bytes))) return refuse_for_bytes();
    parser.body_bytes.reserve(parser.framing.n_bytes);
    return true;
  } catch (const std::bad_alloc&) {
    fault_ = {503, "memory ran out"};
    return false;
  }
}

bool Session::refuse_for_bytes() {
  fault_ = {503, "the server holds as many bytes of requests and replies as it may (--max-inflight-mb); try again"};
  return false;
}

// What has come of the body goes to the request. False when it is whole, or refused.
bool Session::take_body(Parser& parser) {
  try {
    parser.take_waiting(buffer_);
  } catch (const std::bad_alloc&) {
    fault_ = {503, "memory ran out"};
    return false;
  }
  const auto more = static_cast<int64_t>(parser.body_bytes.size()) - parser.held.amount();
  if (more > 0 && !parser.held.try_grow(more)) return refuse_for_bytes();
  if (parser.body->state() == BodyScanner::State::kBad) fault_ = parser.body->fault();
  return parser.body->state() == BodyScanner::State::kMore;
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
  const bool is_ours = fault_.status >= 500;
  return error_response({is_ours ? ErrorKind::kInternal : ErrorKind::kInvalidInput, fault_.message},
                        {.status = fault_.status, .type = is_ours ? "server_error" : "invalid_request_error"});
}

// A reply that needs no handler; false unless the connection is still in step.
net::awaitable<bool> Session::refuse(const HttpRequest& request, const HttpResponse& response) {
  const HttpResponse told = in_form_of(request, response);
  keep_alive_ = !request.method.empty() && !told.must_close && !network_.is_draining && fault_.message.empty();
  fault_ = {};
  ReplyRecord record{.status = told.status, .n_bytes = told.body.size()};
  set_deadline(network_.options.write_timeout);
  const std::string bytes = head_of(told, false, request) + (request.method == "HEAD" ? "" : told.body);
  record.was_cut = !co_await write(bytes);
  clear_deadline();
  report(request, record);
  co_return keep_alive_ && !record.was_cut;
}

net::awaitable<bool> Session::reply(const std::shared_ptr<Exchange>& exchange, bool keep_alive, bool is_http_1_0) {
  const HttpRequest& request = exchange->request();
  ReplyRecord record;
  keep_alive_ = keep_alive && !network_.is_draining;
  is_chunked_ = !is_http_1_0;
  watch_for_end();
  const bool is_whole = co_await send_waiting(*exchange, request, record);
  ++n_watches_;
  record.was_cut = !is_whole;
  record.note = exchange->noted();
  if (!is_whole) {
    exchange->mark_gone();
    socket_.close();
    is_client_gone_ = true;
  } else {
    stop_waiting();
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
    if (is_client_gone_ || exchange.is_cut()) co_return false;
    has_event_ = false;
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
      set_deadline(network_.options.write_timeout);
      const bool is_sent = co_await write(bytes);
      clear_deadline();
      if (!is_sent) co_return false;
    }
    if (output.is_last) co_return true;
    bytes = std::string();  // waits may be long and many
    if (!co_await next_event(network_.options.ping_interval) && pings) exchange.write(": ping\n\n");
  }
}

net::awaitable<bool> Session::write(const std::string& bytes) {
  const auto [error, n_written] = co_await net::async_write(socket_, net::buffer(bytes), kTuple);
  co_return !error;
}

// True when something happened, false after `at_most`.
net::awaitable<bool> Session::next_event(std::chrono::milliseconds at_most) {
  if (!has_event_) {
    event_.expires_after(at_most);
    co_await event_.async_wait(kTuple);
  }
  co_return std::exchange(has_event_, false);
}

// Lets the client read the last reply although it may still be sending: closing at once would reset the connection.
net::awaitable<void> Session::linger() {
  is_lingering_ = true;
  set_deadline(kLinger);
  if (is_secured_) {
    const auto [error] = co_await socket_.async_goodbye(kTuple);
    if (!error) co_return clear_deadline();
  }
  error_code ignored;
  socket_.tcp().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
  for (size_t n_dropped = 0; n_dropped < kMaxLingerBytes && !has_expired_;) {
    buffer_.clear();
    const auto [error, n_read] = co_await socket_.tcp().async_read_some(buffer_.prepare(16 * kReadBytes), kTuple);
    if (error) break;
    n_dropped += n_read;
  }
  clear_deadline();
}

net::awaitable<void> Session::upgrade(HttpRequest& request, Parser& parser) {
  FairBudget::Share held = network_.handler.bytes().share_of(request.key);
  const std::function<void()> wake = [wakes = network_.wakes, id = id_] { wakes->add(id); };
  web_socket_ = std::make_shared<WebSocket>(std::move(request), network_.options.waiting_bytes, wake, std::move(held));
  WebSocketSession session(*this, web_socket_);
  co_await session.run(parser.message());
  is_client_gone_ = true;
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

// While a request is answered, the only news from the client is that it left, or its next request.
void Session::watch_for_end() {
  const uint64_t watch = ++n_watches_;
  socket_.async_wait([this, watch, alive = std::weak_ptr(alive_)](error_code error) {
    if (error == net::error::operation_aborted || alive.expired() || watch != n_watches_) return;
    if (!guarded([this] { read_while_busy(); })) abort();
  });
}

void Session::read_while_busy() {
  error_code error;
  const size_t n_read = socket_.read_now(buffer_.prepare(kReadBytes), error);
  buffer_.commit(error ? 0 : n_read);
  if (error && error != net::error::would_block) {
    is_client_gone_ = true;
    stop_waiting();  // a write that waits for the reader
    signal();
  } else if (buffer_.size() < kMaxPipelinedBytes) {
    watch_for_end();
  }
}

void Session::stop_waiting() {
  if (is_lingering_) return socket_.close();
  socket_.cancel();
}

void Session::signal() {
  has_event_ = true;
  event_.cancel();
  if (on_signal_) on_signal_();
  if (exchange_ && exchange_->is_cut()) stop_waiting();
  if (web_socket_ && web_socket_->is_cut()) abort();
}

void Session::close_if_idle() {
  if (web_socket_) {
    if (web_socket_->n_busy == 0 && close_web_socket_) close_web_socket_();
  } else if (is_idle_ && !exchange_) {
    stop_waiting();
  }
}

void Session::abort() {
  if (close_web_socket_) close_web_socket_();
  is_client_gone_ = true;
  socket_.close();
  has_event_ = true;
  event_.cancel();
}

void Session::set_deadline(std::chrono::milliseconds at_most) {
  const uint64_t deadline = ++n_deadlines_;
  has_expired_ = false;
  deadline_.expires_after(at_most);
  deadline_.async_wait([this, deadline, alive = std::weak_ptr(alive_)](error_code error) {
    if (error || alive.expired() || deadline != n_deadlines_) return;
    has_expired_ = true;
    stop_waiting();
  });
}

void Session::clear_deadline() {
  ++n_deadlines_;
  has_expired_ = false;
  deadline_.cancel();
}

}  // namespace candor::http
