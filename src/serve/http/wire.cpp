#include "serve/http/wire.h"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace candor::http {
namespace {

using boost::system::error_code;
constexpr size_t kStoreBytes = 8192;

class OpenSslStream final : public TlsStream {
 public:
  OpenSslStream(net::ip::tcp::socket socket, TlsIdentity& identity)
      : stream_(std::move(socket), identity.context()),
        news_(stream_.get_executor(), net::steady_timer::time_point::max()) {}

  net::ip::tcp::socket& socket() override { return stream_.next_layer(); }
  void handshake(Handler handler) override;
  void say_goodbye(Handler handler) override;
  void write(net::const_buffer bytes, IoHandler handler) override;
  void wait_for_bytes(Handler handler) override;
  void read(net::mutable_buffer buffer, IoHandler handler) override;
  size_t read_now(net::mutable_buffer buffer, error_code& error) override;
  void cancel() override;
  void close() override;

 private:
  // A handshake, write or goodbye in work, which cannot be broken off and taken up again.
  class Hold {
   public:
    explicit Hold(OpenSslStream& stream) : stream_(&stream) { ++stream.n_unbreakable_; }
    Hold(Hold&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() { release(); }
    void release() {
      if (stream_ != nullptr) --std::exchange(stream_, nullptr)->n_unbreakable_;
    }

   private:
    OpenSslStream* stream_;
  };

  std::shared_ptr<OpenSslStream> shared_self() { return std::static_pointer_cast<OpenSslStream>(shared_from_this()); }
  template <class Any>
  auto counted(Any handler) {
    return [self = shared_self(), handler = std::move(handler), hold = Hold(*this)](const auto&... results) mutable {
      hold.release();
      std::move(handler)(results...);
    };
  }
  bool has_news() const { return n_stored_ > 0 || fault_; }
  void wait_for_goodbye(Handler handler);
  void begin_reading();
  template <class Then>
  void when_news(Then then);

  net::ssl::stream<net::ip::tcp::socket> stream_;
  net::steady_timer news_;  // never ends; cancelled when there is some, or nobody is to wait
  std::vector<char> store_{};
  size_t first_stored_ = 0;
  size_t n_stored_ = 0;
  error_code fault_{};  // behind what is stored; no more comes
  bool is_reading_ = false;
  std::optional<error_code> goodbye_{};  // how it ended
  int32_t n_unbreakable_ = 0;
};

void OpenSslStream::handshake(Handler handler) {
  stream_.async_handshake(net::ssl::stream_base::server, counted(std::move(handler)));
}

// The read underneath sees the client go, or the goodbye itself does: whichever reads at that time.
void OpenSslStream::say_goodbye(Handler handler) {
  begin_reading();
  stream_.async_shutdown(counted([this](const error_code& error) {
    goodbye_ = error;
    news_.cancel();
  }));
  wait_for_goodbye(std::move(handler));
}

void OpenSslStream::wait_for_goodbye(Handler handler) {
  n_stored_ = 0;
  begin_reading();
  if (fault_ || goodbye_) {
    const error_code how = fault_ ? fault_ : *goodbye_;
    const error_code result = how.category() == net::error::get_ssl_category() ? how : error_code();
    net::post(stream_.get_executor(),
              [self = shared_self(), handler = std::move(handler), result]() mutable { std::move(handler)(result); });
    return;
  }
  news_.async_wait([self = shared_self(), handler = std::move(handler)](const error_code&) mutable {
    self->wait_for_goodbye(std::move(handler));
  });
}

void OpenSslStream::write(net::const_buffer bytes, IoHandler handler) {
  stream_.async_write_some(bytes, counted(std::move(handler)));
}

void OpenSslStream::begin_reading() {
  if (is_reading_ || has_news()) return;
  store_.resize(kStoreBytes);
  stream_.async_read_some(net::buffer(store_), [self = shared_self()](const error_code& error, size_t n_read) {
    self->is_reading_ = false;
    self->first_stored_ = 0;
    self->n_stored_ = error ? 0 : n_read;
    if (error) self->fault_ = error;
    self->news_.cancel();
  });
  is_reading_ = true;
}

// then: called with this stream, through the executor. The handler within waits in the timer's queue, not in this
// object, which it may own.
template <class Then>
void OpenSslStream::when_news(Then then) {
  begin_reading();
  if (has_news()) {
    net::post(stream_.get_executor(), [self = shared_self(), then = std::move(then)]() mutable { then(*self); });
    return;
  }
  news_.async_wait([self = shared_self(), then = std::move(then)](const error_code&) mutable { then(*self); });
}

void OpenSslStream::wait_for_bytes(Handler handler) {
  when_news([handler = std::move(handler)](OpenSslStream& self) mutable {
    std::move(handler)(self.has_news() ? error_code() : net::error::operation_aborted);
  });
}

void OpenSslStream::read(net::mutable_buffer buffer, IoHandler handler) {
  when_news([handler = std::move(handler), buffer](OpenSslStream& self) mutable {
    error_code error;
    const size_t n_read = self.read_now(buffer, error);
    if (error == net::error::would_block) error = net::error::operation_aborted;
    std::move(handler)(error, n_read);
  });
}

size_t OpenSslStream::read_now(net::mutable_buffer buffer, error_code& error) {
  error = {};
  const size_t n = net::buffer_copy(buffer, net::buffer(store_.data() + first_stored_, n_stored_));
  first_stored_ += n;
  n_stored_ -= n;
  if (n == 0 && buffer.size() > 0) error = fault_ ? fault_ : error_code(net::error::would_block);
  return n;
}

void OpenSslStream::cancel() {
  if (n_unbreakable_ > 0) return close();
  news_.cancel();
}

void OpenSslStream::close() {
  error_code ignored;
  socket().close(ignored);
  news_.cancel();
}

}  // namespace

std::shared_ptr<TlsStream> TlsStream::make(net::ip::tcp::socket socket, TlsIdentity& identity) {
  return std::make_shared<OpenSslStream>(std::move(socket), identity);
}

size_t Wire::read_now(net::mutable_buffer buffer, error_code& error) {
  if (tls_) return tls_->read_now(buffer, error);
  socket_.non_blocking(true, error);
  return error ? 0 : socket_.read_some(buffer, error);
}

void Wire::cancel() {
  if (tls_) return tls_->cancel();
  error_code ignored;
  socket_.cancel(ignored);
}

void Wire::close() {
  if (tls_) return tls_->close();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace candor::http
