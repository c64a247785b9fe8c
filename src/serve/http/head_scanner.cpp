#include "serve/http/head_scanner.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "serve/http/text.h"

namespace candor::http {
namespace {

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         kOthers.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool is_target_char(char c) {
  return c > ' ' && c < '\x7f';
}

bool is_value_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

bool is_length(std::string_view text) {
  constexpr size_t kMaxDigits = 18;  // fits 64 bits
  return !text.empty() && text.size() <= kMaxDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

HeadScanner::State HeadScanner::scan(std::string_view bytes) {
  while (true) {
    const size_t end = bytes.find('\n', at_);
    if (end == std::string_view::npos) return check_growth(bytes) ? State::kMore : State::kBad;
    std::string_view line = bytes.substr(at_, end - at_);
    if (line.empty() || line.back() != '\r') {
      refuse(400, "a line of the request head ends without CR");
      return State::kBad;
    }
    line.remove_suffix(1);
    at_ = end + 1;
    if (at_ > limits_.head_bytes) {
      refuse(431, "the request head is larger than " + std::to_string(limits_.head_bytes) + " bytes");
      return State::kBad;
    }
    if (line.empty() && n_lines_ > 0) return check_whole() ? State::kWhole : State::kBad;
    if (!take_line(line)) return State::kBad;
  }
}

// A line that has not ended yet.
bool HeadScanner::check_growth(std::string_view bytes) {
  if (n_lines_ == 0 && !bytes.empty() && !is_token_char(bytes.front()) && bytes.front() != '\r') {
    return refuse(400, "the request does not begin with a method; this port speaks HTTP without TLS: http://");
  }
  if (n_lines_ == 0 && bytes.size() > limits_.target_bytes + 64) {
    return refuse(414, "the request line is larger than " + std::to_string(limits_.target_bytes) + " bytes");
  }
  if (bytes.size() > limits_.head_bytes) {
    return refuse(431, "the request head is larger than " + std::to_string(limits_.head_bytes) + " bytes");
  }
  return true;
}

bool HeadScanner::take_line(std::string_view line) {
  if (n_lines_++ == 0) return take_request_line(line);
  if (n_lines_ - 1 > limits_.n_fields) {
    return refuse(431, "the request has more than " + std::to_string(limits_.n_fields) + " header fields");
  }
  return take_field(line);
}

bool HeadScanner::take_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return refuse(400, "the request line is not METHOD TARGET HTTP/1.1");
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (target.size() > limits_.target_bytes) {
    return refuse(414, "the request's target has " + std::to_string(target.size()) + " bytes, at most " +
                           std::to_string(limits_.target_bytes));
  }
  if (!is_token(line.substr(0, first)) || target.empty() || !std::ranges::all_of(target, is_target_char)) {
    return refuse(400, "the request line holds characters that do not belong there");
  }
  const std::string_view version = line.substr(last + 1);
  is_http_1_0_ = version == "HTTP/1.0";
  if (is_http_1_0_ || version == "HTTP/1.1") return true;
  return refuse(version.starts_with("HTTP/") ? 505 : 400, "the protocol is not HTTP/1.1 or HTTP/1.0");
}

bool HeadScanner::take_field(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) return refuse(400, "a header field is folded over two lines");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return refuse(400, "a header field has no colon");
  if (!is_token(line.substr(0, colon)))
    return refuse(400, "a header field's name holds characters that do not belong there");
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!std::ranges::all_of(value, is_value_char))
    return refuse(400, "a header field's value holds a control character");
  return take_framing(lower_case(line.substr(0, colon)), value);
}

bool HeadScanner::take_framing(std::string_view name, std::string_view value) {
  if (name == "host" && ++n_hosts_ > 1) return refuse(400, "the request has two Host fields");
  if (name == "content-length") {
    if (++n_lengths_ > 1) return refuse(400, "the request has two Content-Length fields");
    if (!is_length(value)) return refuse(400, "Content-Length is not a number of bytes");
    std::from_chars(value.data(), value.data() + value.size(), body_.n_bytes);
  }
  if (name == "transfer-encoding") {
    if (++n_encodings_ > 1 || lower_case(value) != "chunked") {
      return refuse(400, "Transfer-Encoding is not \"chunked\", the only one that is understood");
    }
    body_.is_chunked = true;
  }
  return true;
}

bool HeadScanner::check_whole() {
  if (n_lengths_ > 0 && n_encodings_ > 0)
    return refuse(400, "the request has both Content-Length and Transfer-Encoding");
  if (n_encodings_ > 0 && is_http_1_0_) return refuse(400, "Transfer-Encoding needs HTTP/1.1");
  if (n_hosts_ == 0 && !is_http_1_0_) return refuse(400, "the request has no Host field");
  return true;
}

bool HeadScanner::refuse(int status, std::string message) {
  fault_ = {status, std::move(message)};
  return false;
}

}  // namespace candor::http
