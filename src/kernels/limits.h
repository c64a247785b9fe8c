#pragma once
// What this machine can do at best, measured (bytes read, int8 and f32 operations a second): the denominators of every
// speed that is reported. One call loads one thread; threads that measure together share the DRAM figure between them.

#include "kernels/kernels.h"

namespace candor::kernels {

struct MachineLimits {
  double dram_read_bytes = 0;  // a second, from memory that no cache holds
  double l2_read_bytes = 0;    // a second, from 256 KiB
  double int8_ops = 0;         // a second, a multiply and an add counted as two
  double f32_flops = 0;        // a second
};

// Best of several short runs; takes about a second and 256 MB. Zeros where memory does not suffice.
MachineLimits measure_limits(const KernelTable& table);

}  // namespace candor::kernels
