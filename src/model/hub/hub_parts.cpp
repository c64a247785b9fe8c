#include "model/hub/hub_parts.h"

#include <fmt/format.h>

#include <cstring>

#include "formats/quote.h"
#include "tensor/dtype.h"

namespace candor::model {

using formats::in_quotes;

Error refused_tensor(const TensorView& tensor, const std::string& reason) {
  return fail(ErrorKind::kUnsupported, fmt::format("tensor {}: {}", in_quotes(tensor.name), reason));
}

Result<TensorView> part_of(const TensorView& codes, const std::string& name, const FindTensor& find) {
  const TensorView* found = find(name);
  if (found == nullptr) return refused_tensor(codes, fmt::format("{} is missing, which belongs to it", in_quotes(name)));
  return *found;
}

Result<void> check_part(const TensorView& tensor, bool has_type, const Shape& expected) {
  if (has_type && tensor.shape == expected) return {};
  return refused_tensor(tensor, fmt::format("{} of shape {} does not fit its matrix, expected {}",
                                            dtype_info(tensor.dtype).name, to_string(tensor.shape),
                                            to_string(expected)));
}

bool is_float_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Result<bool> groups_lie_together(const TensorView& order, int64_t n_in, int64_t group) {
  CANDOR_TRY(check_part(order, order.dtype == DType::kI32, Shape{1, {n_in}}));
  const int64_t n_groups = n_in / group;
  bool is_plain = true;
  for (int64_t k = 0; k < n_in; ++k) {
    uint32_t g;
    std::memcpy(&g, order.data + 4 * static_cast<size_t>(k), sizeof g);
    if (g >= n_groups) {
      return refused_tensor(order, fmt::format("input {} is of group {}, but there are {}", k, g, n_groups));
    }
    is_plain = is_plain && g == k / group;
  }
  return is_plain;
}

}  // namespace candor::model
