#pragma once
// A ring of the newest steps' reports, for the web page that draws them: the engine thread writes it and any thread
// reads it. Times by kind of operation are measured only while somebody looks, since measuring has a cost.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "candor/info.h"

namespace candor::serve {

inline constexpr size_t kMostOperations = 16;

// Microseconds, by kind of operation; all zero where they were not measured.
using OperationTimes = std::array<int32_t, kMostOperations>;

struct StepRecord {
  StepReport report{};
  OperationTimes operation_us{};
};

class StepHistory {
 public:
  static constexpr size_t kKept = 512;

  // Names of the operations, at most kMostOperations; none: their times are not measured. Borrowed.
  explicit StepHistory(std::span<const std::string_view> operations = {}) : operations_(operations) {}

  // Rows of all steps so far.
  struct Totals {
    int64_t n_steps = 0;
    int64_t n_prefill_rows = 0;
    int64_t n_decode_rows = 0;
    int64_t n_draft_rows = 0;
    double busy_ms = 0;  // planning, computing, choosing
  };
  struct Newest {
    Totals totals{};
    std::vector<StepRecord> steps{};  // oldest first
  };

  std::span<const std::string_view> operations() const { return operations_; }

  // On the engine thread, after each step.
  void take(const StepReport& report, const OperationTimes& operation_us = {}) {
    const std::lock_guard lock(mutex_);
    ring_[static_cast<size_t>(totals_.n_steps) % kKept] = {report, operation_us};
    ++totals_.n_steps;
    totals_.n_prefill_rows += report.n_prefill_rows;
    totals_.n_draft_rows += report.n_draft_rows;
    totals_.n_decode_rows += report.n_rows - report.n_prefill_rows - report.n_draft_rows;
    totals_.busy_ms += report.plan_ms + report.compute_ms + report.pick_ms;
  }
  // The steps after the first n_known, as far as they are kept.
  Newest since(int64_t n_known) const;

  // Notes that a reader looked at now_ns (steady clock); is_looked_at() is true for kLook_ns after that.
  static constexpr int64_t kLook_ns = 5'000'000'000;
  void look(int64_t now_ns) const { looked_ns_.store(now_ns, std::memory_order_relaxed); }
  bool is_looked_at(int64_t now_ns) const {
    const int64_t looked_ns = looked_ns_.load(std::memory_order_relaxed);
    return looked_ns != kNeverLooked && now_ns - looked_ns < kLook_ns;
  }

 private:
  static constexpr int64_t kNeverLooked = -1;

  const std::span<const std::string_view> operations_;
  mutable std::atomic<int64_t> looked_ns_{kNeverLooked};
  mutable std::mutex mutex_;
  std::array<StepRecord, kKept> ring_{};  // guarded by mutex_, as what follows
  Totals totals_;
};

}  // namespace candor::serve
