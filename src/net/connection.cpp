#include "net/connection.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace candor::client {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Where distributions keep what they trust: the OpenSSL that the program carries may have been built for another one.
constexpr const char* kBundles[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                    "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

std::string untrusted(Connection& connection) {
  const long reason = SSL_get_verify_result(connection.secure->native_handle());
  return reason == X509_V_OK ? std::string() : X509_verify_cert_error_string(reason);
}

bool may_connect(const asio::ip::address& address, const AddressCheck& may_reach) {
  if (!may_reach) return true;
  if (address.is_v4()) return may_reach(address.to_v4().to_bytes());
  return may_reach(address.to_v6().to_bytes());
}

asio::awaitable<Result<void>> open_tcp(Connection& connection, const Url& url, const AddressCheck& may_reach) {
  tcp::resolver resolver(connection.tcp().get_executor());
  connection.tcp().expires_after(kConnectTime);
  auto [unknown, addresses] = co_await resolver.async_resolve(url.host, url.port, kTuple);
  if (unknown) co_return connection_error(url, "its name is not known", unknown);
  for (const auto& entry : addresses) {
    if (may_connect(entry.endpoint().address(), may_reach)) continue;
    co_return fail(ErrorKind::kInvalidInput,
                   fmt::format("{}: its address is not one of the public internet", url.authority(true)));
  }
  auto [error, endpoint] = co_await connection.tcp().async_connect(addresses, kTuple);
  if (error) co_return connection_error(url, "no connection", error);
  error_code ignored;
  connection.tcp().socket().set_option(tcp::no_delay(true), ignored);
  co_return Result<void>();
}

// Asks the proxy, over a connection to it, for one to the host.
asio::awaitable<Result<void>> open_tunnel(Connection& connection, const Url& url, const Url& proxy) {
  http::request<http::empty_body> ask(http::verb::connect, url.authority(true), 11);
  ask.set(http::field::host, url.authority(true));
  if (!proxy.userinfo.empty()) ask.set(http::field::proxy_authorization, basic_credentials(proxy.userinfo));
  connection.tcp().expires_after(kConnectTime);
  auto [unsent, n_sent] = co_await http::async_write(connection.tcp(), ask, kTuple);
  if (unsent) co_return connection_error(proxy, "the proxy takes no request", unsent);
  http::response_parser<http::empty_body> answer;
  answer.skip(true);
  auto [unread, n_read] = co_await http::async_read_header(connection.tcp(), connection.buffer, answer, kTuple);
  if (unread) co_return connection_error(proxy, "the proxy gives no answer", unread);
  if (answer.get().result_int() == 200) co_return Result<void>();
  co_return fail(ErrorKind::kIo, fmt::format("{}: the proxy refuses a way to {} (status {})", proxy.authority(true),
                                             url.authority(true), answer.get().result_int()));
}

asio::awaitable<Result<void>> shake_hands(Connection& connection, const Url& url) {
  error_code not_an_address;
  asio::ip::make_address(url.host, not_an_address);
  if (not_an_address) SSL_set_tlsext_host_name(connection.secure->native_handle(), url.host.c_str());
  connection.secure->set_verify_mode(asio::ssl::verify_peer);
  connection.secure->set_verify_callback(asio::ssl::host_name_verification(url.host));
  connection.tcp().expires_after(kConnectTime);
  auto [error] = co_await connection.secure->async_handshake(asio::ssl::stream_base::client, kTuple);
  if (!error) co_return Result<void>();
  const std::string reason = untrusted(connection);
  if (reason.empty()) co_return connection_error(url, "no TLS", error);
  co_return fail(ErrorKind::kIo, fmt::format("{}: its certificate is not trusted ({}); SSL_CERT_FILE names other "
                                             "authorities",
                                             url.authority(true), reason));
}

}  // namespace

Result<asio::ssl::context*> Authorities::context() {
  if (context_) return context_.get();
  auto made = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  error_code error;
  made->set_options(
      asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  if (!error) made->set_default_verify_paths(error);
  if (error) return fail(ErrorKind::kInternal, fmt::format("TLS could not be set up: {}", error.message()));
  if (!is_set("SSL_CERT_FILE") && !is_set("SSL_CERT_DIR")) {
    for (const char* bundle : kBundles) {
      error_code absent;
      if (std::filesystem::exists(bundle)) made->load_verify_file(bundle, absent);
    }
    ERR_clear_error();
  }
  context_ = std::move(made);
  return context_.get();
}

Error connection_error(const Url& url, const char* step, const error_code& error) {
  const bool is_late = error == beast::error::timeout;
  return fail(ErrorKind::kIo, fmt::format("{}: {} ({})", url.authority(true), step,
                                          is_late ? "nothing came in time" : error.message()));
}

std::string basic_credentials(const std::string& userinfo) {
  std::string encoded(4 * ((userinfo.size() + 2) / 3) + 1, '\0');
  const int n =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                      reinterpret_cast<const unsigned char*>(userinfo.data()), static_cast<int>(userinfo.size()));
  encoded.resize(static_cast<size_t>(n));
  return "Basic " + encoded;
}

asio::awaitable<Result<std::unique_ptr<Connection>>> connect(asio::io_context& io, Authorities& authorities,
                                                             const Url& url, const std::optional<Url>& proxy,
                                                             const AddressCheck& may_reach) {
  asio::ssl::context* tls = nullptr;
  if (url.is_secure()) {
    auto context = authorities.context();
    if (!context) co_return context.error();
    tls = *context;
  }
  auto made = std::make_unique<Connection>(io, tls);
  if (auto opened = co_await open_tcp(*made, proxy ? *proxy : url, may_reach); !opened) co_return opened.error();
  if (tls != nullptr && proxy) {
    if (auto tunnel = co_await open_tunnel(*made, url, *proxy); !tunnel) co_return tunnel.error();
    made->buffer.clear();
  }
  if (tls != nullptr) {
    if (auto done = co_await shake_hands(*made, url); !done) co_return done.error();
  }
  co_return std::move(made);
}

}  // namespace candor::client
