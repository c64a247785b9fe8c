#pragma once
// A hub of our own for tests: a server on a local port that speaks as much of the protocol as is used.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace candor::testing {

inline constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

// Answers GET with what stands under the path; understands "Range: bytes=N-". One thread of its own.
class MockHub {
 public:
  MockHub() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~MockHub() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    close(listener_);
    thread_.join();
  }

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Set before pulling.
  std::map<std::string, std::string> pages;
  size_t cut_after = std::string::npos;  // the connection breaks after so many bytes of a body
  bool can_resume = true;
  // Read after pulling.
  std::vector<std::string> requests;

 private:
  void serve() {
    while (!stopping_) {
      const int peer = accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      answer(peer);
      close(peer);
    }
  }

  void answer(int peer) {
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t n = read(peer, buffer, sizeof(buffer));
      if (n <= 0) return;
      request.append(buffer, static_cast<size_t>(n));
    }
    requests.push_back(request);
    const std::string path = request.substr(4, request.find(' ', 4) - 4);
    const auto page = pages.find(path);
    if (page == pages.end()) return send(peer, "404 Not Found", "");
    size_t begin = 0;
    const size_t range = request.find("Range: bytes=");
    if (can_resume && range != std::string::npos) begin = std::stoul(request.substr(range + 13));
    if (begin >= page->second.size() && begin > 0) return send(peer, "416 Range Not Satisfiable", "");
    send(peer, begin > 0 ? "206 Partial Content" : "200 OK", page->second.substr(begin));
  }

  void send(int peer, const std::string& status, const std::string& body) {
    std::string answer =
        "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
    answer += body.substr(0, body.starts_with("{") ? std::string::npos : cut_after);
    for (size_t at = 0; at < answer.size();) {
      const ssize_t n = ::send(peer, answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<size_t>(n);
    }
  }

  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace candor::testing
