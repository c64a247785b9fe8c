#pragma once
// A backend that measures another one's operations: calls, time and bytes of weights read, by kind. Operations of a
// device that works in the background would be measured as calls only; the CPU's are done when they return. While
// it does not measure, ops() are those of the wrapped backend, and it costs nothing.
// Owns the backend that it wraps; borrows the clock. One thread, like every Backend, but for measure().

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "backend/backend.h"
#include "backend/op_list.h"
#include "backend/wrap/forwarding_backend.h"
#include "obs/clock.h"

namespace candor::backend {

struct OpTime {
  int64_t n_calls = 0;
  int64_t ns = 0;
  uint64_t weight_bytes = 0;
};

class OpTimes {
 public:
  const OpTime& of(OpKind kind) const { return times_[static_cast<size_t>(kind)]; }
  OpTime& of(OpKind kind) { return times_[static_cast<size_t>(kind)]; }
  OpTime total() const;
  void clear() { times_ = {}; }

 private:
  std::array<OpTime, kOpKinds> times_{};
};

class TimedOps final : public Ops {
 public:
  TimedOps(Ops& inner, const obs::Clock& clock) : inner_(inner), clock_(clock) {}
  OpTimes& times() { return times_; }

  void run(const Op& operation) override;

 private:
  Ops& inner_;
  const obs::Clock& clock_;
  OpTimes times_;
  Operands operands_;  // kept to spare allocations
};

class TimedBackend final : public ForwardingBackend {
 public:
  TimedBackend(std::unique_ptr<Backend> inner, const obs::Clock& clock)
      : ForwardingBackend(std::move(inner)), ops_(ForwardingBackend::ops(), clock) {}
  OpTimes& times() { return ops_.times(); }
  // From the next block on. At first it measures. Any thread.
  void measure(bool is_measuring) { is_measuring_.store(is_measuring, std::memory_order_relaxed); }

  Ops& ops() override {
    if (is_measuring_.load(std::memory_order_relaxed)) return ops_;
    return ForwardingBackend::ops();
  }

 private:
  TimedOps ops_;
  std::atomic<bool> is_measuring_{true};
};

}  // namespace candor::backend
