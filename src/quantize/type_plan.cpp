#include "quantize/type_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "formats/quote.h"

namespace candor::quantize {
namespace {

int32_t int_or(const formats::ModelFile& file, const std::string& key, int32_t fallback) {
  const auto value = formats::meta_int(file, key);
  if (!value || !*value || **value < 0 || **value > INT32_MAX) return fallback;
  return static_cast<int32_t>(**value);
}

// "blk.3.ffn_up.7.weight" -> "blk.3.ffn_up_exps.weight" and 7.
struct ExpertName {
  std::string stacked;
  size_t expert = 0;
};
std::optional<ExpertName> expert_name(std::string_view name) {
  constexpr std::string_view kEnd = ".weight";
  if (!name.starts_with("blk.") || !name.ends_with(kEnd)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - kEnd.size());
  const size_t dot = stem.rfind('.');
  const std::string_view part = stem.substr(0, dot);
  ExpertName result;
  const auto [stop, status] = std::from_chars(stem.data() + dot + 1, stem.data() + stem.size(), result.expert);
  if (status != std::errc() || stop != stem.data() + stem.size()) return std::nullopt;
  if (!part.ends_with("ffn_gate") && !part.ends_with("ffn_up") && !part.ends_with("ffn_down")) return std::nullopt;
  result.stacked = fmt::format("{}_exps.weight", part);
  return result;
}

}  // namespace

ModelShape shape_of(const formats::ModelFile& file) {
  const auto name = formats::meta_string(file, "general.architecture");
  const std::string prefix = name && *name ? std::string(**name) : std::string();
  ModelShape shape;
  shape.n_layers = int_or(file, prefix + ".block_count", 0);
  const int32_t heads = int_or(file, prefix + ".attention.head_count", 1);
  shape.n_heads_per_kv = heads / std::max(1, int_or(file, prefix + ".attention.head_count_kv", heads));
  shape.n_experts = int_or(file, prefix + ".expert_count", 0);
  shape.is_tied = file.find("output.weight") == nullptr;
  return shape;
}

size_t bytes_of(const Item& item) {
  return static_cast<size_t>(item.view.shape.n_rows()) *
         row_bytes(dtype_info(item.dtype), item.view.shape.row_elements());
}

Result<void> TypePlan::make() {
  std::map<std::string, std::map<size_t, TensorView>> stacks;
  for (const TensorView& tensor : file_.tensors()) {
    if (const auto expert = expert_name(tensor.name)) {
      stacks[expert->stacked][expert->expert] = tensor;
    } else {
      items_.push_back({tensor, {tensor}, DType::kF32});
    }
  }
  for (const auto& [name, experts] : stacks) CANDOR_TRY(add_stack(name, experts));
  const ModelShape shape = shape_of(file_);
  for (Item& item : items_) CANDOR_TRY(choose_type(item, shape));
  return {};
}

Result<void> TypePlan::add_stack(const std::string& name, const std::map<size_t, TensorView>& experts) {
  Item item;
  item.view = experts.begin()->second;
  for (const auto& [expert, tensor] : experts) {
    if (expert != item.parts.size() || tensor.shape != item.view.shape || tensor.dtype != item.view.dtype) {
      return fail(ErrorKind::kInvalidInput, fmt::format("tensor {}: the experts are not alike, or one is missing",
                                                        formats::in_quotes(tensor.name)));
    }
    item.parts.push_back(tensor);
  }
  item.view.name = names_.emplace_back(name);
  item.view.shape = {3, {static_cast<int64_t>(item.parts.size()), item.parts[0].shape[0], item.parts[0].shape[1]}};
  items_.push_back(std::move(item));
  return {};
}

Result<void> TypePlan::choose_type(Item& item, const ModelShape& shape) const {
  item.dtype = item.view.dtype;
  const bool keeps_type = !options_.recipe && !options_.naive_int8;
  const bool is_vector = item.view.shape.n_dims < 2;
  if (!dtype_info(item.view.dtype).is_weight) {
    if (keeps_type) return {};
    return fail(ErrorKind::kUnsupported,
                fmt::format("tensor {}: type {} can't be quantised", formats::in_quotes(item.view.name),
                            dtype_info(item.view.dtype).name));
  }
  if (keeps_type) {
    if (is_vector) item.dtype = DType::kF32;
    return {};
  }
  constexpr Recipe kInt8{"int8", DType::kQ8_0, 7};
  item.dtype = type_for(options_.naive_int8 ? kInt8 : *options_.recipe, options_.overrides, shape, item.view);
  return {};
}

}  // namespace candor::quantize
