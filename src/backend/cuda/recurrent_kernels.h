#pragma once
// Launches of the kernels of layers that keep a state. One thread.

#include "backend/cuda/kernels/recurrent_args.h"
#include "backend/cuda/launch.h"

namespace candor::backend::cuda {

// REQUIRES: slices with rows; saves that ascend by row, one for the last row of each slice.
void run_conv(Launcher& launcher, const ConvRowsArgs& args);
void run_delta_rule(Launcher& launcher, const DeltaRowsArgs& args);
void run_ssm_scan(Launcher& launcher, const SsmRowsArgs& args);

}  // namespace candor::backend::cuda
