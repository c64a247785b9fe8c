#pragma once
// Launches that choose the experts of a mixture's rows and put the rows of each together: the same launches for any
// scores, so that steps of one shape are one list. One thread.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/product_args.h"
#include "backend/cuda/launch.h"
#include "backend/op_specs.h"

namespace candor::backend::cuda {

// The visits of a mixture's rows (kernels/route_args.h), on the device. [n] where nothing else is said.
struct Visits {
  int32_t n = 0;
  int32_t n_rows = 0;
  int32_t run_rows = 0;        // of a run, at most
  int32_t n_runs = 0;          // that a launch has blocks for
  int32_t* experts = nullptr;  // by row, of a row ascending, as places and weights
  int32_t* places = nullptr;   // behind experts
  float* weights = nullptr;
  int32_t* rows_by_place = nullptr;
  float* weights_by_place = nullptr;
  RowRun* runs = nullptr;  // [n_runs], of matrices by expert
};

size_t visits_bytes(const MoeSpec& spec, int32_t n_rows);
// memory: of so many bytes.
Visits visits_at(std::byte* memory, const MoeSpec& spec, int32_t n_rows);

// Of the device; bias and scales where the spec has them.
struct ExpertScores {
  const float* scores = nullptr;  // [n_rows, n_experts]
  const float* bias = nullptr;    // [n_experts]
  const float* scales = nullptr;  // [n_experts]
};
void find_visits(Launcher& launcher, const MoeSpec& spec, const ExpertScores& scores, const Visits& visits);

}  // namespace candor::backend::cuda
