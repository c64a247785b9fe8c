#include "serve/http/body_scanner.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace candor::http {
namespace {

constexpr size_t kMaxLineBytes = 256;
constexpr uint64_t kMaxFramingBytes = 256 * 1024;  // beyond as much as there is body
constexpr size_t kMaxSizeDigits = 16;

bool is_line_char(char c) {
  return c == '\t' || (c >= ' ' && c != '\x7f');
}

}  // namespace

BodyScanner::BodyScanner(const BodyFraming& framing, uint64_t max_bytes)
    : max_bytes_(max_bytes), part_(framing.is_chunked ? Part::kSizeLine : Part::kBytes), n_left_(framing.n_bytes) {
  if (framing.is_empty()) state_ = State::kWhole;
  if (n_left_ > max_bytes_) refuse(413, {});
}

size_t BodyScanner::take(std::string_view bytes, std::string& body) {
  size_t n_taken = 0;
  while (state_ == State::kMore && n_taken < bytes.size()) {
    const std::string_view rest = bytes.substr(n_taken);
    const bool is_data = part_ == Part::kBytes || part_ == Part::kChunk;
    n_taken += is_data ? take_data(rest, body) : take_line(rest);
  }
  return n_taken;
}

size_t BodyScanner::take_data(std::string_view bytes, std::string& body) {
  const size_t n = static_cast<size_t>(std::min<uint64_t>(n_left_, bytes.size()));
  body.append(bytes.substr(0, n));
  n_left_ -= n;
  if (n_left_ > 0) return n;
  if (part_ == Part::kBytes) {
    state_ = State::kWhole;
  } else {
    part_ = Part::kChunkEnd;
  }
  return n;
}

size_t BodyScanner::take_line(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t n = end == std::string_view::npos ? bytes.size() : end + 1;
  if (line_.size() + n > kMaxLineBytes + 2) {
    refuse(400, "a line between the chunks of the body is longer than " + std::to_string(kMaxLineBytes) + " bytes");
    return n;
  }
  framing_bytes_ += n;
  if (framing_bytes_ > kMaxFramingBytes + n_body_) {
    refuse(400, "the body comes in chunks that are smaller than what is between them");
    return n;
  }
  line_.append(bytes.substr(0, n));
  if (end != std::string_view::npos) end_line();
  return n;
}

void BodyScanner::end_line() {
  if (!line_.ends_with("\r\n")) return refuse(400, "a line between the chunks of the body ends without CR");
  line_.resize(line_.size() - 2);
  if (!std::ranges::all_of(line_, is_line_char)) {
    return refuse(400, "a line between the chunks of the body holds a control character");
  }
  if (part_ == Part::kSizeLine) {
    begin_chunk();
  } else if (!line_.empty()) {
    refuse(400, part_ == Part::kTrailer ? "the body ends with trailer fields, which are not understood here"
                                        : "a chunk of the body is longer than its size");
  } else if (part_ == Part::kTrailer) {
    state_ = State::kWhole;
  } else {
    part_ = Part::kSizeLine;
  }
  line_.clear();
}

void BodyScanner::begin_chunk() {
  const size_t n_digits = std::min(line_.find_first_of("; \t"), line_.size());
  uint64_t size = 0;
  const auto [end, status] = std::from_chars(line_.data(), line_.data() + n_digits, size, 16);
  const bool is_number = n_digits > 0 && n_digits <= kMaxSizeDigits && line_.front() != '-';
  if (!is_number || status != std::errc() || end != line_.data() + n_digits) {
    return refuse(400, "a chunk of the body begins without its size in hexadecimal digits");
  }
  if (size > max_bytes_ - n_body_) return refuse(413, {});
  n_body_ += size;
  n_left_ = size;
  part_ = size == 0 ? Part::kTrailer : Part::kChunk;
}

void BodyScanner::refuse(int status, std::string message) {
  if (status == 413) message = "the request body is larger than " + std::to_string(max_bytes_) + " bytes";
  fault_ = {status, std::move(message)};
  state_ = State::kBad;
}

}  // namespace candor::http
