// What matrix products are made of. Each file of an instruction set includes it and compiles the products of one family
// of weight formats: floats, blocks of 32, super-blocks of 256. Each of these uses the ones above it.
// clang-format off
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/unpack.inl.h"
#include "kernels/generic/matmul.inl.h"
// clang-format on
