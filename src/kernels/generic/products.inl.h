// What the products of any weight format are made of, for an instruction set's file of one family.
// Each of these uses the ones above it.
// clang-format off
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/unpack.inl.h"
#include "kernels/generic/matmul.inl.h"
// clang-format on
