#pragma once
// Beast's parser as a session uses it: the head in one piece, already checked by HeadScanner, then the body.

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string_view>

#include "serve/http/session.h"

namespace candor::http {

inline HeadFault too_large(uint64_t body_bytes) {
  return {413, fmt::format("the request body is larger than {} bytes", body_bytes)};
}

inline bool is_framing_error(const boost::system::error_code& error) {
  namespace http = boost::beast::http;
  return error.category() == http::make_error_code(http::error::bad_chunk).category() &&
         error != http::error::partial_message && error != http::error::end_of_stream;
}

struct Session::Parser {
  using Message = boost::beast::http::request<boost::beast::http::string_body>;

  // What is wrong with the head beyond HeadScanner's rules.
  std::optional<HeadFault> take_head(std::string_view head, uint64_t body_bytes) {
    boost::system::error_code error;
    parser.body_limit(body_bytes);
    parser.header_limit(static_cast<uint32_t>(head.size() + 1));
    parser.put(boost::asio::const_buffer(head.data(), head.size()), error);
    if (!error) return std::nullopt;
    if (error == boost::beast::http::error::body_limit) return too_large(body_bytes);
    return HeadFault{400, "the request head is malformed: " + error.message()};
  }
  // As much of the body as has come: a request that is refused unread leaves the connection in step if that was all.
  void take_waiting(boost::beast::flat_buffer& bytes) {
    boost::system::error_code ignored;
    parser.eager(true);
    while (!ignored && !parser.is_done() && bytes.size() > 0) bytes.consume(parser.put(bytes.data(), ignored));
  }
  bool is_done() const { return parser.is_done(); }
  bool keep_alive() const { return parser.get().keep_alive(); }
  Message& message() { return parser.get(); }

  boost::beast::http::request_parser<boost::beast::http::string_body> parser;
};

}  // namespace candor::http
