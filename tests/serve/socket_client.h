#pragma once
// A WebSocket client of raw frames, against /v1/stream.

#include <string>

#include "serve/client.h"

namespace candor::testing {

// A WebSocket client of bytes: masked text frames out, whole frames in.
class SocketClient {
 public:
  explicit SocketClient(uint16_t port, const std::string& target = "/v1/stream", const std::string& fields = {})
      : raw_(port) {
    raw_.send("GET " + target +
              " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + fields +
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    const std::string head = raw_.read_until("\r\n\r\n");
    const size_t end = head.find("\r\n\r\n");
    is_open = head.starts_with("HTTP/1.1 101") && head.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") != std::string::npos;
    if (end != std::string::npos) read_ = head.substr(end + 4);
  }

  void send(const Json& message) { raw_.send(masked('\x81', message.dump())); }
  RawClient& raw() { return raw_; }

  static std::string masked(char first, const std::string& text) {
    std::string frame(1, first);
    if (text.size() < 126) {
      frame += static_cast<char>(0x80 | text.size());
    } else {
      frame += static_cast<char>(0x80 | 126);
      frame += static_cast<char>(text.size() >> 8);
      frame += static_cast<char>(text.size() & 0xff);
    }
    return frame + std::string(4, '\0') + text;  // a mask of zeros
  }

  // The next frame: its opcode, and its payload in `payload`; 0 when the connection is over.
  int next(std::string& payload) {
    if (!need(2)) return 0;
    const int opcode = read_[0] & 0x0f;
    size_t size = static_cast<unsigned char>(read_[1]) & 0x7f;
    size_t header = 2;
    if (size == 126) {
      if (!need(4)) return 0;
      size = static_cast<size_t>(static_cast<unsigned char>(read_[2])) << 8 | static_cast<unsigned char>(read_[3]);
      header = 4;
    }
    if (!need(header + size)) return 0;
    payload = read_.substr(header, size);
    read_.erase(0, header + size);
    return opcode;
  }
  Json next_json() {
    std::string payload;
    return next(payload) == 1 ? Json::parse(payload, nullptr, false) : Json();
  }
  int close_code() {
    std::string payload;
    for (int opcode = 0; (opcode = next(payload)) != 0;) {
      if (opcode == 8 && payload.size() >= 2) {
        return static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
      }
    }
    return 0;
  }

  bool is_open = false;

 private:
  bool need(size_t n) {
    while (read_.size() < n) {
      const std::string more = raw_.read_some();
      if (more.empty()) return false;
      read_ += more;
    }
    return true;
  }

  RawClient raw_;
  std::string read_;
};

}  // namespace candor::testing
