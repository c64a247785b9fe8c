#pragma once
// Backends that break one rule of the numerics contract on purpose, so that the tests that prove the contract can show
// that they would notice. For tests only: no public option leads here.

#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "kernels/attend.h"

namespace candor::backend::cpu {

enum class Fault : uint8_t {
  kNone,
  kSplitKeysByThreads,  // attention splits the keys into as many parts as there are threads
  kSplitKeysByRows,     // into 1 + (rows of the step mod 5) parts
};

Result<std::unique_ptr<Backend>> make_faulty_cpu_backend(const CpuOptions& options, Fault fault);

// Attention as written on paper, in f32, with the keys in n_parts parts that are combined at the end: the number of
// parts shows in the last bits. REQUIRES: bf16 pages.
void attend_in_parts(const kernels::AttendArgs& args, int32_t n_parts);

}  // namespace candor::backend::cpu
