#include "model/hub/hub_index.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/name_order.h"
#include "formats/quote.h"

namespace candor::model {

using formats::in_quotes;

Result<std::set<std::string>> shards_of(const nlohmann::json& index, std::string_view name) {
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: has no object \"weight_map\"; download it again", name));
  }
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    const std::string file = shard.is_string() ? shard.get<std::string>() : std::string();
    if (file.find('/') != std::string::npos || file.find('\\') != std::string::npos ||
        !file.ends_with(".safetensors")) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{}: tensor {} is in {}, expected a .safetensors file of the folder itself", name,
                              in_quotes(tensor), in_quotes(file)));
    }
    shards.insert(file);
  }
  return shards;
}

Result<void> check_index(const nlohmann::json& index, std::string_view name,
                         const std::set<std::string_view>& present) {
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (present.contains(tensor)) continue;
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: tensor {} is not in {}; download that file again", name,
                                                      in_quotes(tensor), in_quotes(shard.get<std::string>())));
  }
  return {};
}

Result<void> refuse_duplicates(std::span<const TensorView> tensors, std::span<const uint32_t> order,
                               const std::string& folder) {
  const auto twice = formats::first_duplicate(tensors, order, [](const TensorView& tensor) { return tensor.name; });
  if (!twice) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{}: two shards hold tensor {}", folder, in_quotes(tensors[*twice].name)));
}

}  // namespace candor::model
