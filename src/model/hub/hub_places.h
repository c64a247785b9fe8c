#pragma once
// Where a tensor of GGUF's stands in a checkpoint of a form: the row that names it. Pure functions; any thread.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "model/hub/hub_form.h"
#include "model/hub/hub_names.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// A tensor of the file that a row of HubExperts names.
struct ExpertPlace {
  const HubExperts* row = nullptr;
  size_t part = 0;
  Match match;
  bool is_bias = false;
};

// "*" stays: "blk.*.ffn_up.#.weight" and "3" -> "blk.*.ffn_up.3.weight".
std::string fill_expert(const std::string& name, std::string_view expert);
// nullptr: nowhere.
const HubTensor* place(const TensorView& tensor, const HubForm& form);
std::optional<ExpertPlace> expert_place(const TensorView& tensor, const HubForm& form);

}  // namespace candor::model
