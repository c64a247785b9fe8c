#pragma once
// Where a block of threads works in a matrix product: one panel, some rows of activations and their results.

#include "backend/cuda/kernels/language.h"
#include "backend/cuda/kernels/product_args.h"
#include "kernels/packed_weight.h"

namespace candor::backend::cuda {

using kernels::kPanelRows;

struct ProductPlace {
  const ProductArgs& args;
  const uint8_t* panel;
  const uint8_t* x;   // the first row
  float* dst;         // of the first row and the panel's first output
  const float* bias;  // of that output, or nullptr
  int32_t n_rows;     // 0 or fewer: nothing is to be done
  int32_t n_columns;  // that are wanted of the panel

  // The last one for a row that is none: its results are not stored.
  CANDOR_DEVICE const uint8_t* row(int32_t i) const {
    return x + int64_t{i < n_rows ? i : n_rows - 1} * args.row_bytes;
  }
};

// Rows [first_row, first_row + most_rows) of this block's run, and one panel.
CANDOR_DEVICE ProductPlace find_place(const ProductArgs& args, int32_t panel, int32_t first_row, int32_t most_rows) {
  const RowRun run = args.runs == nullptr ? RowRun{0, 0, args.most_rows} : args.runs[block_z()];
  const ProductMatrix matrix = args.runs == nullptr ? args.one : args.matrices[run.matrix];
  const int32_t row = run.first_row + first_row;
  const int32_t column = panel * kPanelRows;
  const int32_t n_left = matrix.panels == nullptr ? 0 : run.n_rows - first_row;
  return {.args = args,
          .panel = n_left <= 0 ? nullptr
                               : reinterpret_cast<const uint8_t*>(matrix.panels) + int64_t{panel} * args.panel_bytes,
          .x = reinterpret_cast<const uint8_t*>(args.activations) + int64_t{row} * args.row_bytes,
          .dst = args.dst + row * args.dst_stride + column,
          .bias = matrix.bias == nullptr ? nullptr : matrix.bias + column,
          .n_rows = n_left < most_rows ? n_left : most_rows,
          .n_columns = args.n_out - column < kPanelRows ? args.n_out - column : kPanelRows};
}

// A row that is none and an output that is not wanted are left out.
CANDOR_DEVICE void store_result(const ProductPlace& place, int32_t row, int32_t output, float sum) {
  if (row >= place.n_rows || output >= place.n_columns) return;
  place.dst[row * place.args.dst_stride + output] = place.bias == nullptr ? sum : add_rn(sum, place.bias[output]);
}

}  // namespace candor::backend::cuda
