#pragma once
// What the newest steps computed, kept for whoever draws it: a ring that the engine thread writes and any thread reads.

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "candor/info.h"

namespace candor::serve {

class StepHistory {
 public:
  static constexpr size_t kKept = 512;

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
    std::vector<StepReport> steps{};  // oldest first
  };

  // On the engine thread, after each step.
  void take(const StepReport& report) {
    const std::lock_guard lock(mutex_);
    ring_[static_cast<size_t>(totals_.n_steps) % kKept] = report;
    ++totals_.n_steps;
    totals_.n_prefill_rows += report.n_prefill_rows;
    totals_.n_draft_rows += report.n_draft_rows;
    totals_.n_decode_rows += report.n_rows - report.n_prefill_rows - report.n_draft_rows;
    totals_.busy_ms += report.plan_ms + report.compute_ms + report.pick_ms;
  }
  // Those behind the first n_known steps, as far as they are kept.
  Newest since(int64_t n_known) const;

 private:
  mutable std::mutex mutex_;
  std::array<StepReport, kKept> ring_{};  // guarded by mutex_, as what follows
  Totals totals_;
};

}  // namespace candor::serve
