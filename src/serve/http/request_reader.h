#pragma once
// Reads the requests of one connection, each within its time and its room. Network thread only.

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <utility>

#include "serve/http/client_link.h"
#include "serve/http/head_scanner.h"
#include "serve/http/request_parser.h"

namespace candor::http {

struct Network;

class RequestReader {
 public:
  enum class Read { kWhole, kRefused, kClosed };

  // Both borrowed.
  RequestReader(ClientLink& link, Network& network) : link_(link), network_(network) {}

  net::awaitable<Read> read_head(RequestParser& parser);
  // key: whose room the body takes.
  net::awaitable<Read> read_body(RequestParser& parser, int32_t key);
  // Why the last one was refused; no message: it was not.
  const HeadFault& fault() const { return fault_; }
  void set_fault(HeadFault fault) { fault_ = std::move(fault); }
  // Waits for the first byte of a request, or for a handshake.
  bool is_idle() const { return is_idle_; }
  void set_idle() { is_idle_ = true; }

 private:
  bool begin_body(RequestParser& parser);
  bool refuse_for_bytes();
  void wait_for_body(RequestParser& parser);
  static bool goes_on(const RequestParser& parser);
  bool take_body(RequestParser& parser);

  ClientLink& link_;
  Network& network_;
  HeadFault fault_;
  bool is_idle_ = false;
};

}  // namespace candor::http
