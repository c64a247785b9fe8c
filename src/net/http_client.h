#pragma once
// An HTTP/1.1 client (RFC 9112) for downloads and for loads on a server: http and https, connections that are kept,
// redirects (to http and https, never from https to http), and the proxies of net/proxies.h. Certificates and the names
// in them are checked, against OpenSSL's places (SSL_CERT_FILE, SSL_CERT_DIR) or, without these, the distributions'.
//
// One thread. Callbacks are called from within run_until_one_ends() and fetch(), which may be called again when they
// returned.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "net/addresses.h"

namespace candor::client {

struct HttpRequest {
  std::string url;
  std::string method = "GET";
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string token{};  // a bearer token, for the origin of `url` alone, not for those that it redirects to; "" = none
  std::string body{};   // sent where it is not empty
  int max_redirects = 8;
  // Of every address of a host that is asked, also of those behind redirects: one that may not be reached ends the
  // request. The connection goes to an address that was checked, and takes no proxy. Empty: all may be reached.
  AddressCheck may_reach{};
  // Before the body of the last answer. An error ends the request with it.
  std::function<Result<void>(int status, std::string_view content_type)> on_head{};
};

class HttpClient {
 public:
  // The next bytes of the body of the last answer, as they come. An error ends the request with it.
  using TakeBody = std::function<Result<void>(int status, std::string_view bytes)>;
  // Once, with the status of the last answer. Errors name the URL's host and what failed there.
  using OnEnd = std::function<void(Result<int> status)>;

  HttpClient();
  HttpClient(HttpClient&&) noexcept;
  // What is under way ends without a call.
  ~HttpClient();

  // Begins; run_until_one_ends() goes on.
  void start(HttpRequest request, TakeBody take, OnEnd end);
  // Moves all requests on until one ends, at most for so long.
  void run_until_one_ends(std::chrono::milliseconds at_most);

  // From its start to its end. keep_going: asked ten times a second; false ends it with kCancelled.
  Result<int> fetch(HttpRequest request, TakeBody take, const std::function<bool()>& keep_going = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace candor::client
