#pragma once
// Estimates the time of a step. The coefficients are measured once when an engine starts, or given, and constant from
// then on, so that the plans made with them can be replayed. Integers only.
//
// A step takes rows(n_rows) + (n_back * look_back_ps + n_pairs * attend_ps) / 1000 + (n_out_rows - 1) * out_row_ns
// nanoseconds. rows() is linear between the measured points and, past the last, continues its last segment.

#include <cstdint>
#include <vector>

namespace candor::sched {

struct CostPoint {
  int32_t n_rows = 0;
  int64_t ns = 0;
  bool operator==(const CostPoint&) const = default;
};

// What a step has to do. A sequence's keys and values come from memory once, however many of its rows look at them.
struct StepWork {
  int64_t n_rows = 0;
  int64_t n_back = 0;   // positions before the step, over its sequences
  int64_t n_pairs = 0;  // of a row and a position that it looks at
  int64_t n_out_rows = 0;

  void begin_sequence(int64_t n_past) { n_back += n_past; }
  // Rows [n_past, n_past + n) of a sequence that was begun.
  void add_rows(int64_t n_past, int64_t n) {
    n_rows += n;
    n_pairs += n * n_past + n * (n + 1) / 2;
  }
};

struct CostModel {
  std::vector<CostPoint> points{};  // ascending by n_rows, from 1; empty: every step costs nothing
  int64_t look_back_ps = 0;         // picoseconds for each position of StepWork::n_back
  int64_t attend_ps = 0;            // and for each of StepWork::n_pairs
  int64_t out_row_ns = 0;           // for each row with logits beyond the first
  bool operator==(const CostModel&) const = default;

  int64_t step_ns(const StepWork& work) const;
};

}  // namespace candor::sched
