#pragma once
// This program's operator new counts.

#include <cstdint>

namespace candor::testing {

// Calls by this thread since it began.
int64_t n_allocations();

}  // namespace candor::testing
