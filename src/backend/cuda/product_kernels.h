#pragma once
// Launches of matrix products and of the encoding of their inputs: which kernel of a format, how many blocks, how much
// shared memory. One thread.

#include <cstdint>

#include "backend/cuda/kernels/product_args.h"
#include "backend/cuda/kernels/row_args.h"
#include "backend/cuda/launch.h"
#include "kernels/packed_weight.h"
#include "tensor/dtype.h"

namespace candor::backend::cuda {

// n_runs: of args.runs, or 1.
void run_product(Launcher& launcher, DType dtype, const ProductArgs& args, int32_t n_runs);

void encode_rows(Launcher& launcher, kernels::Encoding encoding, const EncodeArgs& args);

}  // namespace candor::backend::cuda
