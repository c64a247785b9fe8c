#include "net/http_client.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <vector>

#include "net/connection.h"
#include "net/proxies.h"

namespace candor::client {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using Message = http::request<http::string_body>;
using Parser = http::response_parser<http::buffer_body>;

constexpr size_t kChunkBytes = size_t{64} << 10;
constexpr uint32_t kMostHeaderBytes = 64 << 10;
constexpr size_t kMostIdle = 64;  // connections that are kept

// What a request has become behind redirects.
struct Step {
  HttpRequest request;
  Url url;
  std::optional<Url> proxy;
};

Result<Step> make_step(HttpRequest request) {
  CANDOR_ASSIGN(Url url, parse_url(request.url));
  std::optional<Url> proxy;
  if (!request.may_reach) {
    CANDOR_ASSIGN(proxy, proxy_for(url, [](const char* name) -> const char* { return std::getenv(name); }));
  }
  return Step{std::move(request), std::move(url), std::move(proxy)};
}

Message make_message(const Step& step) {
  const bool is_proxied = step.proxy && !step.url.is_secure();
  const std::string target =
      is_proxied ? fmt::format("http://{}{}", step.url.authority(false), step.url.target) : step.url.target;
  Message message;
  message.version(11);
  message.method_string(step.request.method);
  message.target(target);
  message.set(http::field::host, step.url.authority(false));
  message.set(http::field::user_agent, "candor");
  message.set(http::field::accept_encoding, "identity");
  for (const auto& [name, value] : step.request.headers) message.set(name, value);
  if (!step.request.token.empty()) message.set(http::field::authorization, "Bearer " + step.request.token);
  if (is_proxied && !step.proxy->userinfo.empty())
    message.set(http::field::proxy_authorization, basic_credentials(step.proxy->userinfo));
  message.body() = step.request.body;
  message.prepare_payload();
  return message;
}

bool redirects(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Where the answer points, as a request.
Result<HttpRequest> redirected(const Step& step, int status, std::string_view location) {
  CANDOR_ASSIGN(const Url next, resolve_url(step.url, location));
  if (step.url.is_secure() && !next.is_secure()) {
    return fail(ErrorKind::kIo,
                fmt::format("{}: it redirects from https to http, which is not followed", step.url.authority(true)));
  }
  HttpRequest request = step.request;
  request.url = fmt::format("{}://{}{}", next.scheme, next.authority(true), next.target);
  if (!next.has_origin_of(step.url)) request.token.clear();
  if (status != 307 && status != 308 && request.method != "HEAD") {
    request.method = "GET";
    request.body.clear();
  }
  return request;
}

// Over one connection: the request, and the head of its answer.
template <class Stream>
asio::awaitable<error_code> exchange_heads(Connection& connection, Stream& stream, const Message& message,
                                           std::optional<Parser>& parser) {
  connection.tcp().expires_after(kSilence);
  auto [unsent, n_sent] = co_await http::async_write(stream, message, kTuple);
  if (unsent) co_return unsent;
  do {
    parser.emplace();
    parser->body_limit(boost::none);
    parser->header_limit(kMostHeaderBytes);
    parser->skip(message.method() == http::verb::head);
    connection.tcp().expires_after(kSilence);
    auto [unread, n_read] = co_await http::async_read_header(stream, connection.buffer, *parser, kTuple);
    if (unread) co_return unread;
  } while (parser->get().result_int() / 100 == 1);
  co_return error_code();
}

template <class Stream>
asio::awaitable<Result<void>> read_body(Connection& connection, Stream& stream, const Url& url, Parser& parser,
                                        const HttpClient::TakeBody& take) {
  std::vector<char> chunk(kChunkBytes);
  const int status = static_cast<int>(parser.get().result_int());
  while (!parser.is_done()) {
    parser.get().body().data = chunk.data();
    parser.get().body().size = chunk.size();
    connection.tcp().expires_after(kSilence);
    auto [error, n_read] = co_await http::async_read_some(stream, connection.buffer, parser, kTuple);
    const size_t n_bytes = chunk.size() - parser.get().body().size;
    if (n_bytes > 0) {
      if (auto taken = take(status, std::string_view(chunk.data(), n_bytes)); !taken) co_return taken.error();
    }
    if (error == http::error::need_buffer) continue;
    if (error == http::error::partial_message) {
      co_return fail(ErrorKind::kIo,
                     fmt::format("{}: the connection ended before the answer did", url.authority(true)));
    }
    if (error) co_return connection_error(url, "the answer broke off", error);
  }
  co_return Result<void>();
}

}  // namespace

struct HttpClient::Impl {
  struct Idle {
    std::string key;
    std::unique_ptr<Connection> connection;
  };

  asio::io_context io{1};
  Authorities authorities;
  std::vector<Idle> idle;

  static std::string key_of(const Step& step) {
    return fmt::format("{}://{} by {}", step.url.scheme, step.url.authority(true),
                       step.proxy ? step.proxy->authority(true) : "");
  }

  std::unique_ptr<Connection> take_idle(const Step& step) {
    const std::string key = key_of(step);
    for (size_t i = idle.size(); i-- > 0;) {
      if (idle[i].key != key) continue;
      auto connection = std::move(idle[i].connection);
      idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(i));
      return connection;
    }
    return nullptr;
  }

  void keep(const Step& step, std::unique_ptr<Connection> connection) {
    if (idle.size() >= kMostIdle) idle.erase(idle.begin());
    connection->tcp().expires_never();
    connection->is_used = true;
    idle.push_back({key_of(step), std::move(connection)});
  }

  asio::awaitable<error_code> send(Connection& connection, const Message& message, std::optional<Parser>& parser) {
    if (connection.secure) return exchange_heads(connection, *connection.secure, message, parser);
    return exchange_heads(connection, connection.plain, message, parser);
  }

  asio::awaitable<Result<void>> read(Connection& connection, const Url& url, Parser& parser, const TakeBody& take) {
    if (connection.secure) return read_body(connection, *connection.secure, url, parser, take);
    return read_body(connection, connection.plain, url, parser, take);
  }

  // The connection with the answer's head in `parser`. One that was kept may have been closed meanwhile: then the
  // request goes out anew.
  asio::awaitable<Result<std::unique_ptr<Connection>>> open(const Step& step, std::optional<Parser>& parser) {
    const Message message = make_message(step);
    while (true) {
      std::unique_ptr<Connection> connection = take_idle(step);
      if (connection == nullptr) {
        auto made = co_await connect(io, authorities, step.url, step.proxy, step.request.may_reach);
        if (!made) co_return made.error();
        connection = std::move(*made);
      }
      const error_code error = co_await send(*connection, message, parser);
      if (!error) co_return std::move(connection);
      const bool is_stale = connection->is_used && error != beast::error::timeout;
      if (!is_stale) co_return connection_error(step.url, "no answer", error);
    }
  }

  asio::awaitable<Result<int>> follow(HttpRequest request, const TakeBody& take) {
    const int most_redirects = request.max_redirects;
    for (int hop = 0; hop <= most_redirects; ++hop) {
      auto step = make_step(std::move(request));
      if (!step) co_return step.error();
      std::optional<Parser> parser;
      auto connection = co_await open(*step, parser);
      if (!connection) co_return connection.error();
      const int status = static_cast<int>(parser->get().result_int());
      const auto location = parser->get().find(http::field::location);
      if (redirects(status) && location != parser->get().end()) {
        auto next = redirected(*step, status, std::string_view(location->value().data(), location->value().size()));
        if (!next) co_return next.error();
        request = std::move(*next);
        continue;
      }
      if (step->request.on_head) {
        const auto type = (*parser).get()[http::field::content_type];
        auto wanted = step->request.on_head(status, std::string_view(type.data(), type.size()));
        if (!wanted) co_return wanted.error();
      }
      auto read_all = co_await read(**connection, step->url, *parser, take);
      if (!read_all) co_return read_all.error();
      if (parser->keep_alive()) keep(*step, std::move(*connection));
      co_return status;
    }
    co_return fail(ErrorKind::kIo, fmt::format("{}: it redirects more than {} times", request.url, most_redirects));
  }

  asio::awaitable<void> run(HttpRequest request, TakeBody take, OnEnd end) {
    end(co_await follow(std::move(request), take));
    io.stop();
  }
};

HttpClient::HttpClient() : impl_(std::make_unique<Impl>()) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

void HttpClient::start(HttpRequest request, TakeBody take, OnEnd end) {
  asio::co_spawn(impl_->io, impl_->run(std::move(request), std::move(take), std::move(end)), asio::detached);
}

void HttpClient::run_until_one_ends(std::chrono::milliseconds at_most) {
  const auto waits = asio::make_work_guard(impl_->io);  // where nothing is under way, too
  impl_->io.restart();
  impl_->io.run_for(at_most);
}

Result<int> HttpClient::fetch(HttpRequest request, TakeBody take, const std::function<bool()>& keep_going) {
  // Behind a request that is given up nothing may call what is gone: its state is shared.
  struct State {
    TakeBody take;
    std::optional<Result<int>> ended;
    bool is_given_up = false;
  };
  const auto state = std::make_shared<State>(State{std::move(take), {}, false});
  start(
      std::move(request),
      [state](int status, std::string_view bytes) -> Result<void> {
        if (state->is_given_up) return fail(ErrorKind::kCancelled, "stopped");
        return state->take(status, bytes);
      },
      [state](Result<int> status) { state->ended = std::move(status); });
  while (!state->ended) {
    if (keep_going && !keep_going()) {
      state->is_given_up = true;
      return fail(ErrorKind::kCancelled, "stopped");
    }
    run_until_one_ends(std::chrono::milliseconds(100));
  }
  return std::move(*state->ended);
}

}  // namespace candor::client
