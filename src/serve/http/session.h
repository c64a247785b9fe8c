#pragma once
// One connection: requests one after the other, or, after an upgrade, a WebSocket. Network thread only.
// gcc 12 destroys temporaries of a co_await expression twice: arguments of coroutines are named variables, by
// reference. What other threads want of a session comes by its number through the WakeQueue, so that no session is ever
// held, or destroyed, anywhere else.

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "serve/http/server.h"

namespace candor::http {

namespace net = boost::asio;

// Completion token of every co_await: the error comes with the result, nothing is thrown.
inline constexpr auto kTuple = net::as_tuple(net::use_awaitable);

class Session;

class WakeQueue {
 public:
  explicit WakeQueue(net::io_context& io) : io_(&io) {}
  // Any thread. deliver(ids) runs on the network thread, once for all that came until then.
  void add(uint64_t id);
  void on_delivery(std::function<void(const std::vector<uint64_t>&)> deliver) { deliver_ = std::move(deliver); }
  // Nothing is delivered any more.
  void close();

 private:
  void deliver();

  std::function<void(const std::vector<uint64_t>&)> deliver_;  // constant once connections exist
  // Guarded by mutex_.
  std::mutex mutex_;
  net::io_context* io_;
  std::vector<uint64_t> ids_;
};

// What every session shares. Network thread only, but for the atomics and the queue.
struct Network {
  Network(const ServerOptions& server_options, Handler& server_handler, const obs::Log& server_log)
      : options(server_options), handler(server_handler), log(server_log) {}

  const ServerOptions options;
  Handler& handler;
  const obs::Log& log;
  std::unordered_map<uint64_t, Session*> sessions{};
  uint64_t n_sessions_ever = 0;
  uint64_t n_requests_ever = 0;
  std::atomic<int32_t> n_connections{0};
  std::atomic<bool> is_draining{false};
  net::io_context io{1};  // last: destroying it destroys the sessions
  const std::shared_ptr<WakeQueue> wakes = std::make_shared<WakeQueue>(io);
};

class Session {
 public:
  Session(net::ip::tcp::socket socket, Network& network);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  net::awaitable<void> run();
  // Something waits in the exchange or the socket of this session.
  void signal();
  // Ends it if nothing is being answered.
  void close_if_idle();
  void abort();

 private:
  friend class WebSocketSession;
  enum class Read { kWhole, kRefused, kClosed };
  struct Parser;  // the request being read

  net::awaitable<bool> serve_one();
  net::awaitable<Read> read_head(Parser& parser);
  net::awaitable<Read> read_body(Parser& parser);
  net::awaitable<bool> refuse(const HttpRequest& request, const HttpResponse& response);
  HttpResponse fault_response() const;
  net::awaitable<bool> reply(const std::shared_ptr<Exchange>& exchange, bool keep_alive, bool is_http_1_0);
  net::awaitable<bool> send_waiting(Exchange& exchange, const HttpRequest& request, ReplyRecord& record);
  net::awaitable<bool> write(const std::string& bytes);
  net::awaitable<bool> next_event(std::chrono::milliseconds at_most);
  net::awaitable<void> linger();
  net::awaitable<void> upgrade(HttpRequest& request, Parser& parser);

  std::string head_of(const HttpResponse& response, bool is_stream, const HttpRequest& request) const;
  void begin_request(HttpRequest& request) const;
  void watch_for_end();
  void read_while_busy();
  void set_deadline(std::chrono::milliseconds at_most);
  void clear_deadline();

  Network& network_;
  const uint64_t id_;
  net::ip::tcp::socket socket_;
  net::steady_timer deadline_;
  net::steady_timer event_;
  boost::beast::flat_buffer buffer_;
  HeadFault fault_;
  std::shared_ptr<Exchange> exchange_{};     // being answered
  std::shared_ptr<WebSocket> web_socket_{};  // after an upgrade
  std::function<void()> close_web_socket_{};
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // for callbacks that may come too late
  uint64_t n_deadlines_ = 0;
  uint64_t n_watches_ = 0;
  bool has_event_ = false;
  bool has_expired_ = false;
  bool is_idle_ = false;  // waits for the first byte of a request
  bool is_client_gone_ = false;
  bool is_chunked_ = false;  // the reply being sent
  bool keep_alive_ = false;
};

}  // namespace candor::http
