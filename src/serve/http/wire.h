#pragma once
// The byte stream of one connection, plain or TLS, as Asio's AsyncReadStream and AsyncWriteStream. Network thread only;
// a completion handler is never called from inside the call that starts the operation.
//
// With TLS, a wait or a read starts a read underneath that cancelling does not end: its bytes are buffered here for the
// next call, so that a cancelled wait or read loses nothing, as with a plain socket. A cancelled TLS write cannot be
// resumed: it closes the connection.

#include <algorithm>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "serve/http/tls_identity.h"

namespace candor::http {

namespace net = boost::asio;

class TlsStream : public std::enable_shared_from_this<TlsStream> {
 public:
  using Handler = net::any_completion_handler<void(boost::system::error_code)>;
  using IoHandler = net::any_completion_handler<void(boost::system::error_code, size_t)>;

  static std::shared_ptr<TlsStream> make(net::ip::tcp::socket socket, TlsIdentity& identity);
  virtual ~TlsStream() = default;

  virtual net::ip::tcp::socket& socket() = 0;
  virtual void handshake(Handler handler) = 0;
  // Tells the client that nothing more comes, and waits until it says so, too, or is gone; an error where it goes on
  // sending. What it still sends is dropped.
  virtual void say_goodbye(Handler handler) = 0;
  virtual void wait_for_bytes(Handler handler) = 0;
  virtual void read(net::mutable_buffer buffer, IoHandler handler) = 0;
  // Buffered bytes; would_block where there are none.
  virtual size_t read_now(net::mutable_buffer buffer, boost::system::error_code& error) = 0;
  virtual void write(net::const_buffer bytes, IoHandler handler) = 0;
  virtual void cancel() = 0;
  virtual void close() = 0;
};

class Wire {
 public:
  using executor_type = net::any_io_executor;

  explicit Wire(net::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  ~Wire() { close(); }
  Wire(Wire&&) = default;
  Wire& operator=(Wire&&) = delete;

  executor_type get_executor() { return tcp().get_executor(); }
  net::ip::tcp::socket& tcp() { return tls_ ? tls_->socket() : socket_; }
  bool is_open() { return tcp().is_open(); }
  // From now on by TLS; a handshake comes first. REQUIRES: nothing is in work.
  void begin_tls(TlsIdentity& identity) { tls_ = TlsStream::make(std::move(socket_), identity); }
  bool is_tls() const { return tls_ != nullptr; }

  template <class Token>
  auto async_handshake(Token&& token) {
    const auto begin = [](auto handler, Wire* wire) { wire->tls_->handshake(std::move(handler)); };
    return net::async_initiate<Token, void(boost::system::error_code)>(begin, token, this);
  }
  // REQUIRES: is_tls().
  template <class Token>
  auto async_goodbye(Token&& token) {
    const auto begin = [](auto handler, Wire* wire) { wire->tls_->say_goodbye(std::move(handler)); };
    return net::async_initiate<Token, void(boost::system::error_code)>(begin, token, this);
  }
  // Until there is something to read, or the end.
  template <class Handler>
  void async_wait(Handler handler) {
    if (tls_) return tls_->wait_for_bytes(std::move(handler));
    socket_.async_wait(net::ip::tcp::socket::wait_read, std::move(handler));
  }
  size_t read_now(net::mutable_buffer buffer, boost::system::error_code& error);

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    const auto begin = [](auto handler, Wire* wire, const Buffers& into) {
      if (!wire->tls_) return wire->socket_.async_read_some(into, std::move(handler));
      wire->tls_->read(first_of<net::mutable_buffer>(into), std::move(handler));
    };
    return net::async_initiate<Token, void(boost::system::error_code, size_t)>(begin, token, this, buffers);
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    const auto begin = [](auto handler, Wire* wire, const Buffers& from) {
      if (!wire->tls_) return wire->socket_.async_write_some(from, std::move(handler));
      wire->tls_->write(wire->in_one_piece(from), std::move(handler));
    };
    return net::async_initiate<Token, void(boost::system::error_code, size_t)>(begin, token, this, buffers);
  }

  // Ends waits and reads; a write as well, and with TLS the connection then.
  void cancel();
  void close();

 private:
  template <class Buffer, class Buffers>
  static Buffer first_of(const Buffers& buffers) {
    for (auto at = net::buffer_sequence_begin(buffers); at != net::buffer_sequence_end(buffers); ++at) {
      if (const Buffer buffer(*at); buffer.size() > 0) return buffer;
    }
    return {};
  }
  // One record of TLS for a head and what follows it. Owned by this wire until the next write.
  template <class Buffers>
  net::const_buffer in_one_piece(const Buffers& buffers) {
    constexpr size_t kMostInRecord = 16384;
    const auto first = first_of<net::const_buffer>(buffers);
    if (first.size() >= kMostInRecord || first.size() == net::buffer_size(buffers)) return first;
    piece_.resize(std::min(kMostInRecord, net::buffer_size(buffers)));
    net::buffer_copy(net::buffer(piece_), buffers);
    return net::buffer(piece_);
  }

  net::ip::tcp::socket socket_;  // in the clear; else tls_ has it
  std::shared_ptr<TlsStream> tls_{};
  std::string piece_{};
};

// The functions that Beast's WebSocket requires of a stream, found by these names.
inline void beast_close_socket(Wire& wire) {
  wire.close();
}

}  // namespace candor::http
