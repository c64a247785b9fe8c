#pragma once
// Time as an interface, so that tests decide what time it is. Implementations may be called from any thread.

#include <cstdint>

namespace candor::obs {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds from a fixed but arbitrary moment; never goes back.
  virtual int64_t now_ns() const noexcept = 0;
};

class SteadyClock final : public Clock {
 public:
  int64_t now_ns() const noexcept override;
};

// Stands still until it is told to move. Not for several threads.
class ManualClock final : public Clock {
 public:
  int64_t now_ns() const noexcept override { return now_ns_; }
  void advance_ns(int64_t ns) noexcept { now_ns_ += ns; }

 private:
  int64_t now_ns_ = 0;
};

}  // namespace candor::obs
