// Any bytes as frames of a WebSocket whose handler sends every message back: what the server sends is whole frames
// without masks, and at the end the server still answers.
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "fuzz/fuzz_budget.h"
#include "fuzz/loopback.h"
#include "serve/http/server.h"

namespace {

using candor::http::WebSocket;
using candor::testing::LoopbackClient;
using candor::testing::LoopbackServer;
using candor::testing::PlainHandler;

constexpr uint64_t kMessageBytes = 1 << 16;

class EchoHandler final : public PlainHandler {
 public:
  using PlainHandler::PlainHandler;

  void on_message(const std::shared_ptr<WebSocket>& socket, candor::http::SocketMessage message) override {
    CANDOR_CHECK(message.text.size() <= kMessageBytes);
    const bool is_text = candor::first_invalid_utf8(message.text) == message.text.size();
    socket->send(is_text ? std::move(message.text) : "not text");
  }
};

class SocketTarget {
 public:
  void send(std::string_view frames) {
    LoopbackClient client = server_.connect();
    client.send(
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    client.read_until("\r\n\r\n");
    CANDOR_CHECK(client.read().starts_with("HTTP/1.1 101 "));
    client.send(frames);
    client.half_close();
    client.read_until();
    check_frames(std::string_view(client.read()).substr(client.read().find("\r\n\r\n") + 4));
  }

 private:
  // The last may be cut off by the end of the connection.
  static void check_frames(std::string_view bytes) {
    while (bytes.size() >= 2) {
      const auto first = static_cast<uint8_t>(bytes[0]);
      const auto second = static_cast<uint8_t>(bytes[1]);
      const int opcode = first & 0x0f;
      CANDOR_CHECK(first >= 0x80 && (opcode == 1 || (opcode >= 8 && opcode <= 10)));
      CANDOR_CHECK(second < 0x80);
      size_t length = second;
      const size_t n_more = length == 126 ? 2 : length == 127 ? 8 : 0;
      if (n_more > 0) length = 0;
      for (size_t i = 0; i < n_more && 2 + i < bytes.size(); ++i)
        length = length << 8 | static_cast<uint8_t>(bytes[2 + i]);
      CANDOR_CHECK(length <= kMessageBytes);
      if (2 + n_more + length >= bytes.size()) return;
      bytes.remove_prefix(2 + n_more + length);
    }
  }

  LoopbackServer<EchoHandler> server_{kMessageBytes};
};

SocketTarget& socket_target() {
  static SocketTarget made;
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  socket_target();
  const candor::testing::FuzzBudget budget(size);
  socket_target().send({reinterpret_cast<const char*>(data), size});
  return 0;
}
