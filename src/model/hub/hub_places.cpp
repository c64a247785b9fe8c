#include "model/hub/hub_places.h"

namespace candor::model {

std::string fill_expert(const std::string& name, std::string_view expert) {
  return fill_name(name, {.block = "*", .expert = std::string(expert)});
}

const HubTensor* place(const TensorView& tensor, const HubForm& form) {
  for (const HubTensor& row : form.tensors) {
    if (match_name(row.name, tensor.name)) return &row;
  }
  const std::string name = expert_pattern(tensor.name).value_or(std::string(tensor.name));
  for (const HubTensor& row : form.tensors) {
    if (match_name(row.name, name) || match_name(row.name, fill_expert(name, "0"))) return &row;
  }
  return nullptr;
}
std::optional<ExpertPlace> expert_place(const TensorView& tensor, const HubForm& form) {
  for (const bool is_bias : {false, true}) {
    const std::string_view end = is_bias ? ".bias" : ".weight";
    if (!tensor.name.ends_with(end)) continue;
    const std::string_view stem = tensor.name.substr(0, tensor.name.size() - end.size());
    for (const HubExperts& row : form.experts) {
      for (size_t part = 0; part < row.n_parts(); ++part) {
        if (const auto match = match_name(row.names[part], stem)) return ExpertPlace{&row, part, *match, is_bias};
      }
    }
  }
  return std::nullopt;
}

}  // namespace candor::model
