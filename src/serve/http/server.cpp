#include "serve/http/server.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <coroutine>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "serve/http/session.h"

namespace candor::http {
namespace {

using boost::system::error_code;
constexpr std::chrono::milliseconds kAcceptPause{50};  // when the system has no descriptor left
constexpr std::chrono::milliseconds kDrainPoll{20};

}  // namespace

void WakeQueue::add(uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  if (io_ == nullptr) return;
  try {
    ids_.push_back(id);
  } catch (const std::bad_alloc&) {
    has_lost_ids_ = true;
  }
  if (is_posted_) return;
  try {
    net::post(*io_, [this] { deliver(); });
    is_posted_ = true;
  } catch (const std::bad_alloc&) {  // the next one posts; sessions also look by themselves, each ping_interval
    is_posted_ = false;
  }
}

void WakeQueue::deliver() {
  std::vector<uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    is_posted_ = false;
    if (!std::exchange(has_lost_ids_, false)) ids.swap(ids_);
    ids_.clear();
  }
  deliver_(ids);
}

void WakeQueue::close() {
  const std::lock_guard lock(mutex_);
  io_ = nullptr;
}

struct Server::Impl {
  Impl(const ServerOptions& options, Handler& handler)
      : network(options, handler), acceptor(network.io) {
    network.wakes->on_delivery([this](const std::vector<uint64_t>& ids) { wake(ids); });
  }
  ~Impl() {
    network.io.stop();
    if (thread.joinable()) thread.join();
    network.wakes->close();
  }

  Result<void> listen();
  void run() noexcept;
  void wake(const std::vector<uint64_t>& ids);
  void accept();
  net::awaitable<void> accept_connections();
  void start_session(net::ip::tcp::socket socket);
  void close_idle();

  Network network;
  net::ip::tcp::acceptor acceptor;
  bool is_accepting = false;
  std::thread thread;
};

// The network thread. A handler that throws is over; all others go on.
void Server::Impl::run() noexcept {
  while (true) {
    try {
      if (!is_accepting && acceptor.is_open()) accept();
      network.io.run();
      return;
    } catch (...) {
      network.faults.note(FaultPlace::kNetwork, std::current_exception());
    }
  }
}

// All of them where the numbers were lost.
void Server::Impl::wake(const std::vector<uint64_t>& ids) {
  const auto signal = [this](Session& session) {
    try {
      session.signal();
    } catch (...) {
      network.faults.note(FaultPlace::kConnection, std::current_exception());
    }
  };
  if (ids.empty()) {
    for (const auto& [id, session] : network.sessions) signal(*session);
  }
  for (const uint64_t id : ids) {
    if (const auto it = network.sessions.find(id); it != network.sessions.end()) signal(*it->second);
  }
}

Result<void> Server::Impl::listen() {
  const ServerOptions& options = network.options;
  const std::string where = fmt::format("{}:{}", options.host, options.port);
  error_code error;
  const auto address = net::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("host \"{}\" is not an IP address, such as 127.0.0.1 or ::1", options.host));
  }
  const net::ip::tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (!error) return {};
  if (error == net::error::address_in_use) {
    return fail(ErrorKind::kIo, where + " is in use; another --port is free to take, or stop who has it");
  }
  return fail(ErrorKind::kIo, fmt::format("{} cannot be listened on: {}", where, error.message()));
}

// Until the acceptor is closed: begins anew where it ended otherwise.
void Server::Impl::accept() {
  is_accepting = true;
  const auto on_end = [this](const std::exception_ptr& fault) {
    is_accepting = false;
    if (fault) std::rethrow_exception(fault);  // to run(), which begins anew
  };
  try {
    net::co_spawn(network.io, accept_connections(), on_end);
  } catch (...) {
    is_accepting = false;
    throw;
  }
}

net::awaitable<void> Server::Impl::accept_connections() {
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kTuple);
    bool is_started = !error;
    try {
      if (!error) start_session(std::move(socket));
    } catch (...) {
      is_started = false;
      network.faults.note(FaultPlace::kAccept, std::current_exception());
    }
    if (!is_started && acceptor.is_open()) {
      net::steady_timer pause(network.io, kAcceptPause);
      co_await pause.async_wait(kTuple);
    }
  }
}

void Server::Impl::start_session(net::ip::tcp::socket socket) {
  error_code ignored;
  socket.set_option(net::ip::tcp::no_delay(true), ignored);
  if (network.n_connections >= network.options.max_connections) {
    static constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    socket.non_blocking(true, ignored);
    socket.write_some(net::buffer(kFull), ignored);
    return;
  }
  const auto session = std::make_shared<Session>(std::move(socket), network);
  const auto on_end = [session, this](const std::exception_ptr& fault) {
    if (fault) network.faults.note(FaultPlace::kConnection, fault);
  };
  net::co_spawn(network.io, session->run(), on_end);
}

void Server::Impl::close_idle() {
  error_code ignored;
  acceptor.close(ignored);
  for (const auto& [id, session] : network.sessions) session->close_if_idle();
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, Handler& handler) {
  auto impl = std::make_unique<Impl>(options, handler);
  CANDOR_TRY(impl->listen());
  impl->accept();
  impl->thread = std::thread([impl = impl.get()] { impl->run(); });
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::use(std::shared_ptr<TlsIdentity> identity) {
  net::post(impl_->network.io, [impl = impl_.get(), identity = std::move(identity)]() mutable {
    impl->network.tls = std::move(identity);
  });
}

uint16_t Server::port() const {
  error_code ignored;
  return impl_->acceptor.local_endpoint(ignored).port();
}

int32_t Server::n_connections() const {
  return impl_->network.n_connections;
}

bool Server::drain(std::chrono::milliseconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  impl_->network.is_draining = true;
  while (std::chrono::steady_clock::now() < end) {
    net::post(impl_->network.io, [impl = impl_.get()] { impl->close_idle(); });
    std::this_thread::sleep_for(kDrainPoll);
    if (n_connections() == 0) return true;
  }
  return n_connections() == 0;
}

}  // namespace candor::http
