#pragma once
// A server that answers with prepared bytes, whoever asks, plain or TLS, on a port of its own.

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace candor::testing {

namespace asio = boost::asio;

// What a server writes for one request; closes the connection behind it where it says so.
struct Answer {
  std::string text;
  bool closes = false;
};

// Answers in turn, whoever asks; one connection at a time, on a thread of its own.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::deque<Answer> answers, const std::filesystem::path& certificate = {})
      : answers_(std::move(answers)), acceptor_(io_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    if (!certificate.empty()) {
      tls_.emplace(asio::ssl::context::tls_server);
      tls_->use_certificate_chain_file(certificate / "cert.pem");
      tls_->use_private_key_file(certificate / "key.pem", asio::ssl::context::pem);
    }
    port_ = acceptor_.local_endpoint().port();
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    is_stopping_ = true;
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    if (const int open = open_.exchange(-1); open >= 0) ::shutdown(open, SHUT_RDWR);
    thread_.join();
  }
  std::string url(const std::string& target) const {
    return (tls_ ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(port_) + target;
  }
  std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> requests;  // read when nothing is under way
  int n_connections = 0;

 private:
  void serve() {
    while (!is_stopping_) {
      boost::system::error_code error;
      asio::ip::tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      if (error) return;
      ++n_connections;
      open_ = socket.native_handle();
      if (tls_) {
        asio::ssl::stream<asio::ip::tcp::socket&> stream(socket, *tls_);
        stream.handshake(asio::ssl::stream_base::server, error);
        if (!error) answer(stream);
      } else {
        answer(socket);
      }
      open_ = -1;
    }
  }

  template <class Stream>
  void answer(Stream& stream) {
    std::string text;
    while (!answers_.empty()) {
      boost::system::error_code error;
      while (text.find("\r\n\r\n") == std::string::npos) {
        char buffer[4096];
        const size_t n = stream.read_some(asio::buffer(buffer), error);
        if (error) return;
        text.append(buffer, n);
      }
      requests.push_back(text);
      text.clear();
      const Answer next = answers_.front();
      answers_.pop_front();
      asio::write(stream, asio::buffer(next.text), error);
      if (error || next.closes) return;
    }
  }

  asio::io_context io_;
  std::deque<Answer> answers_;
  asio::ip::tcp::acceptor acceptor_;
  std::optional<asio::ssl::context> tls_;
  uint16_t port_ = 0;
  std::atomic<bool> is_stopping_{false};
  std::atomic<int> open_{-1};
  std::thread thread_;
};

inline std::string with_body(const std::string& status, const std::string& body, const std::string& headers = {}) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body;
}

}  // namespace candor::testing
