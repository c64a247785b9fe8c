#pragma once
// What the operations of CudaOps are divided into: an expert's matrix and its rows, the rows that an adapter changes,
// tables of a step that were brought to the device. Pointers are the device's where nothing else is said.

#include <cstdint>
#include <vector>

#include "backend/cpu/rope_tables.h"
#include "backend/cuda/attend_kernels.h"
#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/product_args.h"
#include "backend/cuda/kernels/recurrent_args.h"
#include "backend/op_terms.h"
#include "kernels/packed_weight.h"

namespace candor::backend::cuda {

// One matrix of each expert.
struct ExpertMatrix {
  const Weight* Expert::*weight;
  const Weight* Expert::*bias;
};
// Of a mixture: a matrix of all experts, and the results of all visits.
struct VisitProduct {
  ExpertMatrix matrix;
  Activation dst{};
};

// Rows that an adapter reads and writes; lists are of the device, nullptr: row i itself.
struct AdaptedRows {
  const float* src = nullptr;
  int64_t src_stride = 0;
  const int32_t* src_rows = nullptr;
  float* dst = nullptr;
  int64_t dst_stride = 0;
  const int32_t* dst_rows = nullptr;
  int32_t n = 0;
  bool may_replace = true;  // a term without `down` is another product
};

// A table of this step, of the host and of the device.
struct Rotations {
  const float* host = nullptr;
  cpu::RopeRows rows{};
};

// How a step's rows are shared out in layers of one shape, and their tiles on the device.
struct TileTable {
  AttendRowsArgs shape;
  AttendPlan plan;
  const RowTile* memory = nullptr;
};

// What ALiBi heads add: [n_heads].
struct SlopeTable {
  int32_t n_heads = 0;
  float max_bias = 0.0f;
  std::vector<float> slopes{};
  const float* memory = nullptr;  // this step's, of the device
};

// Lists on the host, kept to spare allocations. Each operation has them for itself.
struct HostRoom {
  std::vector<RowPlace> places{};
  std::vector<float> factors{};
  std::vector<int32_t> rows{}, more_rows{};
  std::vector<int32_t> visits{};
  std::vector<StateSlice> slices{};
  std::vector<RowSave> saves{};
};

}  // namespace candor::backend::cuda
