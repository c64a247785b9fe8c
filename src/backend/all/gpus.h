#pragma once
// What the machine has of GPUs, for people: `candor doctor`. Any thread.

#include <cstdint>
#include <string>
#include <vector>

namespace candor::backend {

struct GpuFinding {
  std::string value;      // "0: NVIDIA H100 80GB HBM3, 85.0 GB, compute capability 9.0; driver for CUDA 13.0"
  std::string problem{};  // empty: fine
};

// One for each card, or one that says why none can be used; none at all where there is nothing to say: the program has
// no kernels for GPUs, and the machine no driver of NVIDIA. Each card is opened and computes for a moment, and its
// arithmetic is compared with the processor's.
std::vector<GpuFinding> examine_gpus();

// What a card does at best, a second; a multiply and an add are two operations.
struct GpuLimits {
  std::string name;
  uint64_t memory_bytes = 0;
  double read_bytes = 0;  // of its memory
  double int8_ops = 0;    // on tensor cores
  double f32_flops = 0;
};
// Of each card that opens; takes less than a second each.
std::vector<GpuLimits> measure_gpus();

}  // namespace candor::backend
