#pragma once
// Parses one request of a connection: the head in one piece, already checked by HeadScanner, by Beast's parser, then
// the body by BodyScanner.

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/body_scanner.h"
#include "serve/http/fair_budget.h"
#include "serve/http/head_scanner.h"

namespace candor::http {

struct RequestParser {
  using Message = boost::beast::http::request<boost::beast::http::string_body>;

  // What is wrong with the head beyond HeadScanner's rules.
  std::optional<HeadFault> take_head(std::string_view head, const BodyFraming& body_framing, uint64_t max_body_bytes) {
    framing = body_framing;
    boost::system::error_code error;
    parser.body_limit(boost::none);
    parser.header_limit(static_cast<uint32_t>(head.size() + 1));
    parser.put(boost::asio::const_buffer(head.data(), head.size()), error);
    if (error) return HeadFault{400, "the request head is malformed: " + error.message()};
    body.emplace(framing, max_body_bytes);
    if (body->state() == BodyScanner::State::kBad) return body->fault();
    return std::nullopt;
  }
  // As much of the body as has come. May throw std::bad_alloc.
  void take_waiting(boost::beast::flat_buffer& bytes) {
    const std::string_view waiting(static_cast<const char*>(bytes.data().data()), bytes.size());
    bytes.consume(body->take(waiting, body_bytes));
  }
  bool is_done() const { return body->state() == BodyScanner::State::kWhole; }
  bool keep_alive() const { return parser.get().keep_alive(); }
  Message& message() { return parser.get(); }

  boost::beast::http::request_parser<boost::beast::http::string_body> parser;
  BodyFraming framing;
  std::optional<BodyScanner> body;
  std::string body_bytes;
  FairBudget::Share held;  // for them
  std::chrono::steady_clock::time_point body_end{};
  size_t n_at_deadline = 0;  // bytes of the body when it was set
};

}  // namespace candor::http
