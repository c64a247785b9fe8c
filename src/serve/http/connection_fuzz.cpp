// Any bytes on a connection: heads, bodies, chunks, trailers, one request behind the other. They are sent twice, at
// once and in two parts, to a server on loopback: what comes back is whole replies of HTTP/1.1, the first request is
// read alike, and the server still answers. First byte: where the parts meet.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "fuzz/loopback.h"
#include "obs/log.h"
#include "serve/http/server.h"

namespace {

using candor::http::Exchange;
using candor::http::HttpRequest;
using candor::http::HttpResponse;
using candor::http::WebSocket;
using candor::testing::LoopbackClient;

constexpr uint64_t kBodyBytes = 1 << 16;

class QuietSink final : public candor::obs::LogSink {
 public:
  void write(candor::obs::LogLevel, std::string_view) noexcept override {}
};

// Keeps what it is asked; "/no" is refused before its body is read.
class KeepingHandler final : public candor::http::Handler {
 public:
  explicit KeepingHandler(const candor::obs::Log& log) : faults_(log) {}

  candor::http::Faults& faults() override { return faults_; }
  candor::http::FairBudget& bytes() override { return bytes_; }
  std::optional<HttpResponse> refuse(HttpRequest& request) override {
    if (request.is_upgrade || request.path == "/no")
      return candor::http::error_response({candor::ErrorKind::kNotFound, "no"});
    return std::nullopt;
  }
  void handle(std::shared_ptr<Exchange> exchange) override {
    const HttpRequest& request = exchange->request();
    CANDOR_CHECK(request.body.size() <= kBodyBytes);
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request.method + " " + request.path + "?" + request.query + " " + request.body);
    }
    exchange->respond({.body = "{}"});
  }
  void on_reply(const HttpRequest&, const candor::http::ReplyRecord&) override {}
  void on_socket(const std::shared_ptr<WebSocket>&) override {}
  void on_message(const std::shared_ptr<WebSocket>&, candor::http::SocketMessage) override {}
  void on_socket_closed(const std::shared_ptr<WebSocket>&) override {}

  std::vector<std::string> take_asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  candor::http::Faults faults_;
  candor::http::FairBudget bytes_{1 << 20, 0};
  std::mutex mutex_;
  std::vector<std::string> asked_;  // guarded by mutex_
};

class Target {
 public:
  Target() : log_(sink_, candor::obs::LogLevel::kOff) {
    candor::http::ServerOptions options;
    options.port = 0;
    options.body_bytes = kBodyBytes;
    auto server = candor::http::Server::start(options, handler_);
    CANDOR_CHECK(server.has_value());
    server_ = std::move(*server);
  }

  // The requests that it understood.
  std::vector<std::string> send(std::string_view first, std::string_view second) {
    LoopbackClient client(server_->port(), ++n_clients_);
    client.send(first);
    if (!second.empty()) usleep(kPauseUs);
    client.send(second);
    client.half_close();
    client.read_until();
    check_replies(client.read());
    return handler_.take_asked();
  }
  void check_alive() {
    LoopbackClient client(server_->port(), ++n_clients_);
    client.send("GET /alive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.read_until();
    CANDOR_CHECK(client.read().starts_with("HTTP/1.1 200 "));
    handler_.take_asked();
  }

 private:
  static constexpr useconds_t kPauseUs = 300;

  // Each with a length, all of it there; HEAD is answered without a body.
  static void check_replies(std::string_view bytes) {
    while (!bytes.empty()) {
      CANDOR_CHECK(bytes.starts_with("HTTP/1.1 "));
      const size_t end = bytes.find("\r\n\r\n");
      CANDOR_CHECK(end != std::string_view::npos);
      const std::string_view head = bytes.substr(0, end + 2);
      bytes.remove_prefix(end + 4);
      if (head.starts_with("HTTP/1.1 100 ")) continue;
      constexpr std::string_view kLength = "\r\ncontent-length: ";
      const size_t at = head.find(kLength);
      CANDOR_CHECK(at != std::string_view::npos);
      size_t length = 0;
      std::from_chars(head.data() + at + kLength.size(), head.data() + head.size(), length);
      if (bytes.empty() || bytes.starts_with("HTTP/1.1 ")) continue;
      CANDOR_CHECK(length <= bytes.size());
      bytes.remove_prefix(length);
    }
  }

  QuietSink sink_;
  candor::obs::Log log_;
  KeepingHandler handler_{log_};
  std::unique_ptr<candor::http::Server> server_;
  uint64_t n_clients_ = 0;
};

Target& target() {
  static Target made;
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  target();
  const candor::testing::FuzzBudget budget(size);
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t cut = 1 + (bytes.size() - 1) * data[0] / 256;
  const auto at_once = target().send(bytes, {});
  const auto in_parts = target().send(bytes.substr(0, cut), bytes.substr(cut));
  if (!at_once.empty() && !in_parts.empty()) CANDOR_CHECK(at_once.front() == in_parts.front());
  target().check_alive();
  return 0;
}
