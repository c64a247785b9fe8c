// Products with rows of int8 that have one scale, by dot products. Each of these uses the ones above it.
// clang-format off
#include "kernels/generic/scaled_tile.inl.h"
#include "kernels/generic/scaled_dot_tile.inl.h"
#include "kernels/generic/scaled_panels.inl.h"
// clang-format on
