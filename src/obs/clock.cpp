#include "obs/clock.h"

#include <chrono>

namespace candor::obs {

int64_t SteadyClock::now_ns() const noexcept {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace candor::obs
