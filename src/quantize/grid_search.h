#pragma once
// f32 values to vectors of a grid (tensor/quant/grid.h) with a search for the scales that lose least: for each group
// several steps around the one that spans its largest value, each refitted by least squares; then, under the d that
// holds the largest of them, the sub-scales next to the rounded ones; at last d again by least squares. Errors are
// weighted as those of other types (search.h). Vectors are the best by weighted error of those that a table names
// for their combination of levels, the nearest ones. A function of the block alone; any thread.

#include "tensor/quant/grid.h"

namespace candor::quantize {

// x: [256], finite; importance: [256] or nullptr. REQUIRES: a grid with signs (IQ2, IQ3).
void encode_grid_searched(const quant::GridFormat& format, const float* x, const float* importance,
                          quant::GridCodes& codes);

}  // namespace candor::quantize
