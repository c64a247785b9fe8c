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
#include "serve/http/server.h"

namespace {

using candor::http::Exchange;
using candor::http::HttpRequest;
using candor::http::HttpResponse;
using candor::testing::LoopbackClient;
using candor::testing::LoopbackServer;
using candor::testing::PlainHandler;

constexpr uint64_t kBodyBytes = 1 << 16;

// Keeps what it is asked; "/no" is refused before its body is read.
class KeepingHandler final : public PlainHandler {
 public:
  using PlainHandler::PlainHandler;

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

  std::vector<std::string> take_asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> asked_;  // guarded by mutex_
};

class Target {
 public:
  // The requests that it understood.
  std::vector<std::string> send(std::string_view first, std::string_view second) {
    LoopbackClient client = server_.connect();
    client.send(first);
    if (!second.empty()) usleep(kPauseUs);
    client.send(second);
    client.half_close();
    client.read_until();
    check_replies(client.read());
    return server_.handler().take_asked();
  }
  void check_alive() {
    LoopbackClient client = server_.connect();
    client.send("GET /alive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.read_until();
    CANDOR_CHECK(client.read().starts_with("HTTP/1.1 200 "));
    server_.handler().take_asked();
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

  LoopbackServer<KeepingHandler> server_{kBodyBytes};
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
