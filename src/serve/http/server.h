#pragma once
// HTTP/1.1 and WebSocket on one port, plain or TLS. One network thread only moves bytes: it reads requests within
// limits, hands them to a Handler and sends what the handler makes. It never waits for the handler, so that what the
// handler answers at once (/health) is sent at once.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "serve/http/exchange.h"
#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"
#include "serve/http/head_scanner.h"
#include "serve/http/message.h"
#include "serve/http/tls_identity.h"
#include "serve/http/web_socket.h"

namespace candor::http {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: any free one
  HeadLimits head{};
  uint64_t body_bytes = 16u << 20;
  size_t waiting_bytes = 1u << 20;  // of a reply that its reader does not take
  int32_t max_connections = 4096;
  size_t max_handshakes = 256;               // at once; beyond, the oldest is dropped
  std::shared_ptr<TlsIdentity> tls = nullptr;  // null: HTTP in the clear
  std::chrono::milliseconds head_timeout{10'000};  // of a handshake; from a request's first byte to the end of its head
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{60'000};  // between requests
  std::chrono::milliseconds write_timeout{60'000};
  std::chrono::milliseconds ping_interval{8'000};   // a silent stream gets a comment
};

struct ReplyRecord {
  int status = 0;
  uint64_t n_bytes = 0;  // of the body
  double ms = 0;         // since the head was complete
  bool was_cut = false;  // the client left, or did not read
  std::string note{};    // the handler's words
};

// How a handshake by TLS went wrong.
enum class HandshakeFailure : uint8_t {
  kPlain,     // a request in the clear
  kLeft,      // the client closed
  kGivenUp,   // it took too long, or was dropped for another
  kProtocol,  // no version, cipher or trust in common, or bytes that are no TLS
};

// Called on the network thread: no method may block. What throws ends its connection or its request alone.
class Handler {
 public:
  virtual ~Handler() = default;
  // Where what was thrown is noted. Any thread; the same one every time.
  virtual Faults& faults() = 0;
  // The bytes in flight: of bodies, messages and replies. The same every time.
  virtual FairBudget& bytes() = 0;
  // Before the body is read; `request.body` is empty. A response ends the request there. May set request.key.
  virtual std::optional<HttpResponse> refuse(HttpRequest& request) = 0;
  virtual void handle(std::shared_ptr<Exchange> exchange) = 0;
  virtual void on_handshake_failed(HandshakeFailure /*failure*/) {}
  virtual void on_reply(const HttpRequest& request, const ReplyRecord& record) = 0;

  virtual void on_socket(const std::shared_ptr<WebSocket>& socket) = 0;
  virtual void on_message(const std::shared_ptr<WebSocket>& socket, SocketMessage message) = 0;
  virtual void on_socket_closed(const std::shared_ptr<WebSocket>& socket) = 0;
};

class Server {
 public:
  // Binds, listens, starts the thread. The handler is borrowed and outlives the server.
  static Result<std::unique_ptr<Server>> start(const ServerOptions& options, Handler& handler);
  // Closes what is open.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // What connections from now on are shown; those that are open go on. REQUIRES: the server began with one. Any thread.
  void use(std::shared_ptr<TlsIdentity> identity);
  uint16_t port() const;
  int32_t n_connections() const;
  // Takes no more connections, closes idle ones, and waits until the others are done, at most that long. True if they
  // were.
  bool drain(std::chrono::milliseconds at_most);

  struct Impl;

 private:
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace candor::http
