#pragma once
// The list of tensors in a state_dict that torch.save wrote: Python's pickle (protocol 2), read as data. Nothing is
// imported, made or called: the few names that such lists hold (a dict, a tensor's parts) are compared, and any other
// is refused. Pure; any thread.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::formats::torch {

// Names are borrowed from the pickle.
struct PickledTensor {
  std::string_view name;
  DType dtype = DType::kF32;
  std::string_view storage;  // the file of the archive's data/ that holds it
  int64_t offset = 0;        // elements
  Shape shape;
};

// Refused: more than 2^16 values, tensors that are not stored row by row, values that are no tensors. file_name: of
// errors, in quotes.
Result<std::vector<PickledTensor>> read_pickle(std::string_view pickle, std::string_view file_name);

}  // namespace candor::formats::torch
