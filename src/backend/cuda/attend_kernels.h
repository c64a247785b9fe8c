#pragma once
// Launches of attention's kernels. One thread, in the order of the device.

#include <cstddef>

#include "backend/cuda/device.h"
#include "backend/cuda/kernels/attend_args.h"

namespace candor::backend::cuda {

// Bytes that args.partials needs.
size_t attend_partial_bytes(const AttendRowsArgs& args);

void store_pages(Device& device, const StorePagesArgs& args);
void attend_rows(Device& device, const AttendRowsArgs& args);

}  // namespace candor::backend::cuda
