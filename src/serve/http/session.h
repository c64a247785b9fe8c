#pragma once
// One connection: requests one after the other, or, after an upgrade, a WebSocket. Network thread only.
// gcc 12 destroys temporaries of a co_await expression twice: arguments of coroutines are named variables, by
// reference. What other threads want of a session comes by its number through the WakeQueue, so that no session is ever
// held, or destroyed, anywhere else.

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "serve/http/client_link.h"
#include "serve/http/exchange.h"
#include "serve/http/faults.h"
#include "serve/http/message.h"
#include "serve/http/request_reader.h"
#include "serve/http/server.h"
#include "serve/http/tls_identity.h"
#include "serve/http/web_socket.h"

namespace candor::http {

class Session;

class WakeQueue {
 public:
  explicit WakeQueue(net::io_context& io) : io_(&io) {}
  // Any thread. deliver(ids) runs on the network thread, once for all that came until then; with nothing where memory
  // for the numbers ran out: any of them may have been woken.
  void add(uint64_t id) noexcept;
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
  bool is_posted_ = false;
  bool has_lost_ids_ = false;
};

// What every session shares. Network thread only, but for the atomics and the queue.
struct Network {
  Network(const ServerOptions& server_options, Handler& server_handler)
      : options(server_options), handler(server_handler), faults(server_handler.faults()), tls(server_options.tls) {}

  const ServerOptions options;
  Handler& handler;
  Faults& faults;
  std::shared_ptr<TlsIdentity> tls;  // of connections to come; null: in the clear
  std::unordered_map<uint64_t, Session*> sessions{};
  std::set<uint64_t> handshakes{};  // sessions that are in one, the oldest first
  uint64_t n_sessions_ever = 0;
  uint64_t n_requests_ever = 0;
  std::atomic<int32_t> n_connections{0};
  std::atomic<bool> is_draining{false};
  net::io_context io{1};  // last: destroying it destroys the sessions
  const std::shared_ptr<WakeQueue> wakes = std::make_shared<WakeQueue>(io);
};

class Session : public std::enable_shared_from_this<Session> {
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
  using Read = RequestReader::Read;

  net::awaitable<bool> shake_hands();
  net::awaitable<void> answer_in_the_clear();
  net::awaitable<bool> serve_one();
  std::optional<HttpResponse> handlers_refusal(HttpRequest& request);
  void hand_over(const std::shared_ptr<Exchange>& exchange);
  void report(const HttpRequest& request, const ReplyRecord& record) const;
  net::awaitable<bool> refuse(const HttpRequest& request, const HttpResponse& response);
  HttpResponse fault_response() const;
  net::awaitable<bool> reply(const std::shared_ptr<Exchange>& exchange, bool keep_alive, bool is_http_1_0);
  net::awaitable<bool> send_waiting(Exchange& exchange, const HttpRequest& request, ReplyRecord& record);
  net::awaitable<void> upgrade(HttpRequest& request, RequestParser& parser);

  std::string head_of(const HttpResponse& response, bool is_stream, const HttpRequest& request) const;
  void begin_request(HttpRequest& request) const;
  // False where it threw, which is noted.
  template <class Action>
  bool guarded(const Action& action) const noexcept {
    try {
      action();
      return true;
    } catch (...) {
      network_.faults.note(FaultPlace::kConnection, std::current_exception());
      return false;
    }
  }

  Network& network_;
  const uint64_t id_;
  ClientLink link_;
  RequestReader reader_;
  std::shared_ptr<Exchange> exchange_{};     // being answered
  std::shared_ptr<WebSocket> web_socket_{};  // after an upgrade
  std::function<void()> close_web_socket_{};
  std::function<void()> on_signal_{};  // after an upgrade
  bool is_chunked_ = false;            // the reply being sent
  bool keep_alive_ = false;
};

}  // namespace candor::http
