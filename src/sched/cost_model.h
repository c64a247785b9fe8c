#pragma once
// What a step is expected to take: measured once when an engine starts, or given; from then on a constant, so that the
// plans which are made with it replay. Integers only.
//
// A step of T rows that look at P positions in all, O of them with logits, takes rows(T) + P * attend_ps / 1000 +
// (O - 1) * out_row_ns nanoseconds, where rows() runs straight between the measured points and, past the last, on along
// the last stretch.

#include <cstdint>
#include <vector>

namespace candor::sched {

struct CostPoint {
  int32_t n_rows = 0;
  int64_t ns = 0;
  bool operator==(const CostPoint&) const = default;
};

struct CostModel {
  std::vector<CostPoint> points{};  // ascending by n_rows, from 1; empty: every step costs nothing
  int64_t attend_ps = 0;            // picoseconds for each pair of a row and a position that it looks at
  int64_t out_row_ns = 0;           // for each row with logits beyond the first
  bool operator==(const CostModel&) const = default;

  int64_t step_ns(int64_t n_rows, int64_t n_attended, int64_t n_out_rows = 1) const;
};

// Pairs of a row and a position that rows [n_past, n_past + n_rows) of a sequence make.
constexpr int64_t attended_pairs(int64_t n_past, int64_t n_rows) {
  return n_rows * n_past + n_rows * (n_rows + 1) / 2;
}

}  // namespace candor::sched
