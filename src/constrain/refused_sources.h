#pragma once
// Remembers the constraint sources (grammars, schemas) that were refused last, with the error, so that refusing the
// same one again costs nothing: a client that repeats it would keep a helper process busy for seconds each time. Any
// thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace candor::constrain {

class RefusedSources {
 public:
  std::optional<Error> find(int32_t kind, std::string_view source) const;
  // The oldest are forgotten beyond kMaxSources or kMaxBytes. Refusals that hold for this moment only (kBusy,
  // kOutOfMemory, kCancelled, kInternal, kIo) are not kept.
  void add(int32_t kind, std::string_view source, const Error& error);

 private:
  static constexpr size_t kMaxSources = 256;
  static constexpr size_t kMaxBytes = size_t{8} << 20;
  struct Refused {
    int32_t kind;
    std::string source;
    Error error;
  };

  mutable std::mutex mutex_;
  std::deque<Refused> refused_;  // guarded by mutex_, as is n_bytes_; the oldest first
  size_t n_bytes_ = 0;
};

}  // namespace candor::constrain
