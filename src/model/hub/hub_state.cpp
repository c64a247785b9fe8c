#include "model/hub/hub_state.h"

#include <fmt/format.h>

#include <vector>

#include "formats/quote.h"
#include "model/hub/hub_delta.h"
#include "tensor/dtype.h"
#include "tensor/encode.h"

namespace candor::model {
namespace {

Error odd_shape(const TensorView& tensor, const char* expected) {
  return fail(ErrorKind::kInvalidInput, fmt::format("tensor {}: shape {}; expected {}", formats::in_quotes(tensor.name),
                                                    to_string(tensor.shape), expected));
}

bool are_columns_of_rates(HubChange change) {
  return change == HubChange::kRateColumn || change == HubChange::kDeepRates;
}

}  // namespace

Result<float*> widen_elements(TensorView& view, const NewCopy& new_copy) {
  TensorView wide = view;
  wide.dtype = DType::kF32;
  wide.n_bytes = static_cast<size_t>(view.shape.n_elements()) * sizeof(float);
  CANDOR_ASSIGN(std::byte * copy, new_copy(wide));
  auto* values = reinterpret_cast<float*>(copy);
  decode_elements(view.dtype, view.data, view.shape.n_elements(), values);
  wide.data = copy;
  view = wide;
  return values;
}

Result<void> change_state(HubChange change, int64_t n_groups, TensorView& view, const NewCopy& new_copy) {
  const Shape shape = view.shape;
  Shape changed;
  if (change == HubChange::kPlainTaps) {
    if (shape.n_dims != 3 || shape[1] != 1) return odd_shape(view, "[channels, 1, taps]");
    changed = {2, {shape[0], shape[2]}};
  } else {
    const bool is_deep = change == HubChange::kDeepRates && shape.n_dims == 4 && shape[2] == shape.n_elements();
    if (shape.n_dims != 1 && !is_deep) return odd_shape(view, "a vector");
    const bool is_grouped = change == HubChange::kGroupRows;
    if (is_grouped && (n_groups < 1 || shape[0] % n_groups != 0)) return odd_shape(view, "as many of each group");
    changed = is_grouped ? Shape{2, {n_groups, shape[0] / n_groups}} : Shape{2, {shape.n_elements(), 1}};
  }
  CANDOR_ASSIGN(float* values, widen_elements(view, new_copy));
  view.shape = changed;
  if (are_columns_of_rates(change)) to_rates(values, shape.n_elements());
  return {};
}

Shape state_shape_on_hub(HubChange change, const Shape& shape) {
  if (change == HubChange::kPlainTaps) return {3, {shape[0], 1, shape[1]}};
  if (change == HubChange::kDeepRates) return {4, {1, 1, shape.n_elements(), 1}};
  return {1, {shape.n_elements()}};
}

void revert_state(HubChange change, float* values, int64_t n) {
  if (are_columns_of_rates(change)) from_rates(values, n);
}

Result<void> drop_two_rows(TensorView& view) {
  constexpr int64_t kDropped = 2;
  if (view.shape.n_dims != 2 || view.shape[0] <= kDropped) return odd_shape(view, "more than two rows");
  view.data += static_cast<size_t>(kDropped) * view.row_bytes();
  view.n_bytes -= static_cast<size_t>(kDropped) * view.row_bytes();
  view.shape.dims[0] -= kDropped;
  return {};
}

Result<bool> check_scaled(std::span<const RowFactors> factors, const TensorView& view) {
  int64_t n_rows = 0;
  bool is_one = true;
  for (const RowFactors& row : factors) {
    n_rows += row.n_rows;
    is_one &= row.first == 1.0f && row.second == 1.0f;
  }
  const int64_t n_seen = view.shape.n_dims <= 2 ? view.shape[0] : 0;
  if (n_seen != n_rows) return odd_shape(view, fmt::format("{} rows", n_rows).c_str());
  return !is_one;
}

void scale_rows(std::span<const RowFactors> factors, const TensorView& view, std::byte* to) {
  std::vector<float> values(static_cast<size_t>(view.shape.n_elements()));
  decode_elements(view.dtype, view.data, view.shape.n_elements(), values.data());
  const int64_t width = view.shape.n_dims == 1 ? 1 : view.shape[1];
  auto at = values.begin();
  for (const RowFactors& row : factors) {
    const auto end = at + row.n_rows * width;
    for (; at != end; ++at) *at = *at * row.first * row.second;
  }
  encode_elements(view.dtype, values.data(), view.shape.n_elements(), to);
}

}  // namespace candor::model
