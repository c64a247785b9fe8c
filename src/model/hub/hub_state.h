#pragma once
// Converts tensors of gated convolutions and state-space layers between the shapes of Hugging Face checkpoints and
// those of GGUF files, in both directions (HubChange in hub_form.h); scales rows by factors of config.json; and drops
// the first two rows of tables of positions.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/error.h"
#include "model/hub/hub_form.h"
#include "tensor/tensor_view.h"

namespace candor::model {

constexpr bool is_of_state(HubChange change) {
  return change >= HubChange::kPlainTaps && change <= HubChange::kGroupRows;
}

// Memory of a tensor like this, to be filled.
using NewCopy = std::function<Result<std::byte*>(const TensorView& view)>;

// The tensor becomes f32; its elements.
Result<float*> widen_elements(TensorView& view, const NewCopy& new_copy);

// The tensor becomes GGUF's, in f32. n_groups: of the state space. Refuses another shape by name.
Result<void> change_state(HubChange change, int64_t n_groups, TensorView& view, const NewCopy& new_copy);
// The shape that a GGUF tensor has in a checkpoint; and its elements, changed in place.
Shape state_shape_on_hub(HubChange change, const Shape& shape);
void revert_state(HubChange change, float* values, int64_t n);

// kScaled: whether a factor is another than 1. Refuses another number of rows by name.
Result<bool> check_scaled(std::span<const RowFactors> factors, const TensorView& view);
// In f32, rounded to the tensor's type. to: view.n_bytes.
void scale_rows(std::span<const RowFactors> factors, const TensorView& view, std::byte* to);

// kDropTwoRows. Refuses a tensor that has no more.
Result<void> drop_two_rows(TensorView& view);

}  // namespace candor::model
