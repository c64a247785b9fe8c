#pragma once
// The strict reading of a request body behind its head: so many bytes, or chunks (RFC 9112, section 7.1). What frames
// the chunks is never kept, and bounded: each line of a size and its extensions, and all of it together; trailer fields
// are refused. One instance per request. Linear in the bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/http/head_scanner.h"

namespace candor::http {

class BodyScanner {
 public:
  enum class State { kMore, kWhole, kBad };

  // max_bytes: of the body alone.
  BodyScanner(const BodyFraming& framing, uint64_t max_bytes);

  State state() const { return state_; }
  // Takes of `bytes` what belongs to the body, which goes to `body`, and to its framing. Returns how many were taken:
  // all of them while there is more to come.
  size_t take(std::string_view bytes, std::string& body);
  const HeadFault& fault() const { return fault_; }

 private:
  enum class Part { kBytes, kSizeLine, kChunk, kChunkEnd, kTrailer };

  size_t take_data(std::string_view bytes, std::string& body);
  size_t take_line(std::string_view bytes);
  void end_line();
  void begin_chunk();
  void refuse(int status, std::string message);

  // Constant after construction.
  const uint64_t max_bytes_;

  Part part_;
  State state_ = State::kMore;
  uint64_t n_left_ = 0;  // of the body, or of the chunk
  uint64_t n_body_ = 0;  // of all chunks begun
  uint64_t framing_bytes_ = 0;
  std::string line_;  // begun, not ended
  HeadFault fault_;
};

}  // namespace candor::http
