#pragma once
// What the readers of quantised matrices share: the tensors that make one up, and the refusal of those that don't fit.

#include <cstdint>
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

// order: I32 [n_in], the group of each input, of n_in / group. Whether they lie together, one behind the other; refuses
// groups that do not exist.
Result<bool> groups_lie_together(const TensorView& order, int64_t n_in, int64_t group);

}  // namespace candor::model
