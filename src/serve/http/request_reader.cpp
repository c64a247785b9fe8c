#include "serve/http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/body_scanner.h"
#include "serve/http/fair_budget.h"
#include "serve/http/session.h"
#include "serve/http/text.h"

namespace candor::http {
namespace {

namespace beast = boost::beast;
constexpr size_t kBodyReadBytes = 64 * 1024;
constexpr size_t kLeastBodyBytes = 64 * 1024;  // in each kBodyWindow
constexpr std::chrono::milliseconds kBodyWindow{15'000};

std::string_view bytes_in(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

}  // namespace

net::awaitable<RequestReader::Read> RequestReader::read_head(RequestParser& parser) {
  HeadScanner scanner(network_.options.head);
  is_idle_ = link_.buffer().size() == 0;
  if (is_idle_ && network_.is_draining) co_return Read::kClosed;
  link_.set_deadline(is_idle_ ? network_.options.idle_timeout : network_.options.head_timeout);
  HeadScanner::State state = scanner.scan(bytes_in(link_.buffer()));
  while (state == HeadScanner::State::kMore) {
    const auto [error, n_read] = co_await link_.wire().async_read_some(link_.buffer().prepare(kReadBytes), kTuple);
    if (error && link_.has_expired() && !is_idle_) {
      fault_ = {408, "the request head did not arrive in time"};
      co_return Read::kRefused;
    }
    if (error) co_return Read::kClosed;
    link_.buffer().commit(n_read);
    if (is_idle_) link_.set_deadline(network_.options.head_timeout);
    is_idle_ = false;
    state = scanner.scan(bytes_in(link_.buffer()));
  }
  link_.clear_deadline();
  if (state == HeadScanner::State::kWhole) {
    const std::optional<HeadFault> fault = parser.take_head(bytes_in(link_.buffer()).substr(0, scanner.head_bytes()),
                                                            scanner.body(), network_.options.body_bytes);
    link_.buffer().consume(scanner.head_bytes());
    if (!fault) co_return Read::kWhole;
    fault_ = *fault;
  } else {
    fault_ = scanner.fault();
  }
  co_return Read::kRefused;
}

net::awaitable<RequestReader::Read> RequestReader::read_body(RequestParser& parser, int32_t key) {
  parser.held = network_.handler.bytes().share_of(key);
  if (parser.is_done()) co_return Read::kWhole;
  if (!begin_body(parser)) co_return Read::kRefused;
  parser.body_end = std::chrono::steady_clock::now() + network_.options.body_timeout;
  wait_for_body(parser);
  if (lower_case(std::string(parser.message()[beast::http::field::expect])) == "100-continue") {
    const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!co_await link_.write(go_on)) co_return Read::kClosed;
  }
  while (take_body(parser)) {
    const auto [error, n_read] = co_await link_.wire().async_read_some(link_.buffer().prepare(kBodyReadBytes), kTuple);
    if (error && link_.has_expired() && goes_on(parser)) {
      wait_for_body(parser);
      continue;
    }
    if (error && link_.has_expired()) {
      fault_ = {408, "the request body did not arrive in time"};
      co_return Read::kRefused;
    }
    if (error) {
      link_.mark_gone();
      co_return Read::kClosed;
    }
    link_.buffer().commit(n_read);
  }
  link_.clear_deadline();
  co_return fault_.message.empty() ? Read::kWhole : Read::kRefused;
}

// A large body holds room that others may want from its head on: it has to come, or to come faster than this.
void RequestReader::wait_for_body(RequestParser& parser) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(parser.body_end - std::chrono::steady_clock::now());
  const bool is_large = parser.framing.n_bytes > kLeastBodyBytes;
  parser.n_at_deadline = parser.body_bytes.size();
  link_.set_deadline(is_large ? std::min(left, kBodyWindow) : left);
}

bool RequestReader::goes_on(const RequestParser& parser) {
  return parser.body_bytes.size() >= parser.n_at_deadline + kLeastBodyBytes &&
         std::chrono::steady_clock::now() < parser.body_end;
}

// Room for all of a body whose size is known. False, with the fault, where there is none.
bool RequestReader::begin_body(RequestParser& parser) {
  try {
    if (!parser.held.try_grow(static_cast<int64_t>(parser.framing.n_bytes))) return refuse_for_bytes();
    parser.body_bytes.reserve(parser.framing.n_bytes);
    return true;
  } catch (const std::bad_alloc&) {
    fault_ = {503, "memory ran out"};
    return false;
  }
}

bool RequestReader::refuse_for_bytes() {
  fault_ = {503, "the server holds as many bytes of requests and replies as it may (--max-inflight-mb); try again"};
  return false;
}

// What has come of the body goes to the request. False when it is whole, or refused.
bool RequestReader::take_body(RequestParser& parser) {
  try {
    parser.take_waiting(link_.buffer());
  } catch (const std::bad_alloc&) {
    fault_ = {503, "memory ran out"};
    return false;
  }
  const auto more = static_cast<int64_t>(parser.body_bytes.size()) - parser.held.amount();
  if (more > 0 && !parser.held.try_grow(more)) return refuse_for_bytes();
  if (parser.body->state() == BodyScanner::State::kBad) fault_ = parser.body->fault();
  return parser.body->state() == BodyScanner::State::kMore;
}

}  // namespace candor::http
