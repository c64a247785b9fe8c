#pragma once
// What the readers of quantised matrices share: the tensors that make one up, and the refusal of those that don't fit.

#include <string>

#include "base/error.h"
#include "model/hub/hub_weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

Error refused_tensor(const TensorView& tensor, const std::string& reason);

// Another tensor of the matrix whose codes are given; an error that names it where it is missing.
Result<TensorView> part_of(const TensorView& codes, const std::string& name, const FindTensor& find);

// has_type: whether the type is one that is read.
Result<void> check_part(const TensorView& tensor, bool has_type, const Shape& expected);

bool is_float_type(DType dtype);

}  // namespace candor::model
