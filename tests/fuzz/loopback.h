#pragma once
// A server in this process, and one TCP connection to it, for targets that send it any bytes. Each connection comes
// from another address of 127/8: ports of connections that ended are not free at once, and a fuzzer makes many. Every
// wait is bounded.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "obs/log.h"
#include "serve/http/server.h"

namespace candor::testing {

class LoopbackClient {
 public:
  LoopbackClient(uint16_t port, uint64_t number) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    CANDOR_CHECK(fd_ >= 0);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    const sockaddr_in from = address(0x7f000002u + static_cast<uint32_t>(number % 0xffff), 0);
    CANDOR_CHECK(::bind(fd_, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0);
    const sockaddr_in to = address(INADDR_LOOPBACK, port);
    CANDOR_CHECK(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  ~LoopbackClient() { ::close(fd_); }
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;

  // What comes back meanwhile is read, so that neither side waits for the other for ever.
  void send(std::string_view bytes) {
    while (!bytes.empty() && is_open_) {
      const short what = wait(POLLIN | POLLOUT);
      if ((what & POLLIN) != 0) read_some();
      if ((what & POLLOUT) == 0) continue;
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  void half_close() { ::shutdown(fd_, SHUT_WR); }
  // Until the other side closes, or `marker` was read. A server that does neither within 30 s has failed.
  void read_until(std::string_view marker = {}) {
    while (is_open_ && (marker.empty() || read_.find(marker) == std::string::npos)) {
      wait(POLLIN);
      read_some();
    }
  }
  // Everything that was read.
  const std::string& read() const { return read_; }

 private:
  static constexpr int kPatienceMs = 30'000;

  static sockaddr_in address(uint32_t host, uint16_t port) {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port = htons(port);
    made.sin_addr.s_addr = htonl(host);
    return made;
  }
  short wait(short events) const {
    pollfd waits{.fd = fd_, .events = events, .revents = 0};
    CANDOR_CHECK(::poll(&waits, 1, kPatienceMs) > 0);
    return waits.revents;
  }
  void read_some() {
    char buffer[16384];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) {
      is_open_ = false;
    } else {
      read_.append(buffer, static_cast<size_t>(n));
    }
  }

  int fd_;
  bool is_open_ = true;
  std::string read_;
};

// Refuses nothing, answers "{}" and passes sockets over; a target overrides what it is about.
class PlainHandler : public http::Handler {
 public:
  explicit PlainHandler(const obs::Log& log) : faults_(log) {}

  http::Faults& faults() override { return faults_; }
  http::FairBudget& bytes() override { return bytes_; }
  std::optional<http::HttpResponse> refuse(http::HttpRequest&) override { return std::nullopt; }
  void handle(std::shared_ptr<http::Exchange> exchange) override { exchange->respond({.body = "{}"}); }
  void on_reply(const http::HttpRequest&, const http::ReplyRecord&) override {}
  void on_socket(const std::shared_ptr<http::WebSocket>&) override {}
  void on_message(const std::shared_ptr<http::WebSocket>&, http::SocketMessage) override {}
  void on_socket_closed(const std::shared_ptr<http::WebSocket>&) override {}

 private:
  http::Faults faults_;
  http::FairBudget bytes_{1 << 20, 0};
};

// H: a PlainHandler. What it logs nobody reads.
template <class H>
class LoopbackServer {
 public:
  explicit LoopbackServer(uint64_t body_bytes) : log_(sink_, obs::LogLevel::kOff) {
    http::ServerOptions options;
    options.port = 0;
    options.body_bytes = body_bytes;
    auto server = http::Server::start(options, handler_);
    CANDOR_CHECK(server.has_value());
    server_ = std::move(*server);
  }

  H& handler() { return handler_; }
  LoopbackClient connect() { return LoopbackClient(server_->port(), ++n_clients_); }

 private:
  class QuietSink final : public obs::LogSink {
   public:
    void write(obs::LogLevel, std::string_view) noexcept override {}
  };

  QuietSink sink_;
  obs::Log log_;
  H handler_{log_};
  std::unique_ptr<http::Server> server_;
  uint64_t n_clients_ = 0;
};

}  // namespace candor::testing
