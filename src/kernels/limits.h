#pragma once
// What this machine can do at best, measured (bytes read, operations a second in each arithmetic): the denominators of
// every speed that is reported. One call loads one thread; threads that measure together share the DRAM figure between
// them.

#include "kernels/kernels.h"
#include "tensor/dtype.h"

namespace candor::kernels {

struct MachineLimits {
  double dram_read_bytes = 0;  // a second, from memory that no cache holds
  double l2_read_bytes = 0;    // a second, from 256 KiB
  double int8_ops = 0;         // a second, a multiply and an add counted as two
  double bf16_flops = 0;       // a second
  double f32_flops = 0;        // a second

  double ops(Arithmetic arithmetic) const;
};

// Best of several short runs; takes about a second and 256 MB. Zeros where memory does not suffice.
MachineLimits measure_limits(const KernelTable& table);

}  // namespace candor::kernels
