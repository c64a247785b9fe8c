#pragma once
// The words that kernels are written in, beside plain C++: nvcc compiles them for a GPU, and any C++20 compiler for the
// emulation. A .cu file names nothing of CUDA by itself. Floats are f32, rounded to nearest even, with FTZ and DAZ.

#if defined(__CUDACC__)
#include "backend/cuda/kernels/language_device.h"  // IWYU pragma: export
#else
#include "backend/cuda/emulation/language_host.h"  // IWYU pragma: export
#endif
