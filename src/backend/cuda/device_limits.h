#pragma once
// What a card can do at best, measured in less than a second: the denominators of the speeds that are reported.

#include "backend/cuda/device.h"

namespace candor::backend::cuda {

struct DeviceLimits {
  double read_bytes = 0;  // a second, from memory that no cache holds; 0 where there was no room to measure
  double int8_ops = 0;    // a second on tensor cores, a multiply and an add counted as two
  double f32_flops = 0;   // a second
};

double measure_reads(Device& device);
DeviceLimits measure_device_limits(Device& device);

}  // namespace candor::backend::cuda
