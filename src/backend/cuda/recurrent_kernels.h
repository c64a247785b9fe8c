#pragma once
// Launches of the kernels of layers that keep a state. One thread, in the order of the device.

#include "backend/cuda/device.h"
#include "backend/cuda/kernels/recurrent_args.h"

namespace candor::backend::cuda {

// REQUIRES: slices with rows; saves that ascend by row, one for the last row of each slice.
void run_conv(Device& device, const ConvRowsArgs& args);
void run_delta_rule(Device& device, const DeltaRowsArgs& args);
void run_ssm_scan(Device& device, const SsmRowsArgs& args);

}  // namespace candor::backend::cuda
