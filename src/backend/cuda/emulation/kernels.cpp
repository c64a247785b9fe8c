// The kernels' sources, compiled for the host.

#include "backend/cuda/emulation/language_host.h"
//
#include "backend/cuda/kernels/rows.cu"
