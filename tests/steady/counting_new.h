#pragma once
// This program's operator new counts, and fails where it is told to.

#include <cstdint>

namespace candor::testing {

// Calls by this thread since it began.
int64_t n_allocations();

// Of this thread's calls from here on, the first `n_good` succeed and the `n_bad` behind them throw std::bad_alloc.
void fail_allocations(int64_t n_good, int64_t n_bad);
// No call fails any more. How many did.
int64_t stop_failing();

}  // namespace candor::testing
