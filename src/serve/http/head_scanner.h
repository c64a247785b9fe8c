#pragma once
// The strict reading of an HTTP/1 request head, before any parser sees it: what two servers could understand in two
// ways is refused (RFC 9112, sections 2.2, 3, 5 and 6.3). One instance per request; the bytes are the caller's and are
// given whole at each call. Linear in the bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace candor::http {

struct HeadLimits {
  size_t head_bytes = 32 * 1024;
  size_t target_bytes = 8 * 1024;
  int n_fields = 100;
};

struct HeadFault {
  int status = 400;
  std::string message;
};

// How the bytes behind a head are to be read.
struct BodyFraming {
  bool is_chunked = false;
  uint64_t n_bytes = 0;  // by Content-Length

  bool is_empty() const { return !is_chunked && n_bytes == 0; }
};

class HeadScanner {
 public:
  enum class State { kMore, kWhole, kBad };

  explicit HeadScanner(const HeadLimits& limits) : limits_(limits) {}

  // bytes: all that arrived since the request began. After kWhole, head_bytes() of them are the head.
  State scan(std::string_view bytes);

  size_t head_bytes() const { return at_; }
  const BodyFraming& body() const { return body_; }
  const HeadFault& fault() const { return fault_; }

 private:
  bool take_line(std::string_view line);
  bool take_request_line(std::string_view line);
  bool take_field(std::string_view line);
  bool take_framing(std::string_view name, std::string_view value);
  bool check_whole();
  bool check_growth(std::string_view bytes);
  bool refuse(int status, std::string message);

  // Constant after construction.
  HeadLimits limits_;

  size_t at_ = 0;  // where the next line begins
  int n_lines_ = 0;
  int n_hosts_ = 0;
  int n_lengths_ = 0;
  int n_encodings_ = 0;
  bool is_http_1_0_ = false;
  BodyFraming body_;
  HeadFault fault_;
};

}  // namespace candor::http
