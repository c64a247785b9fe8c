#include "model/hub/hub_eagle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "formats/quote.h"
#include "model/hparams.h"

namespace candor::model {
namespace {

using nlohmann::json;

constexpr const char* kLayerKey = "transformer_layer_config";
constexpr const char* kLayerIds = "eagle_aux_hidden_state_layer_ids";

json value_at(const json& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  return at == object.end() ? json() : *at;
}

// A key of the head's, which stands beside the others or in "eagle_config".
json setting(const HubConfig& config, const char* key) {
  const json* own = config.stated(key);
  const json* group = config.stated("eagle_config");
  if (own != nullptr) return *own;
  return group == nullptr ? json() : value_at(*group, key);
}

Result<void> add_flag(const HubConfig& config, const char* key, std::string_view prefix, formats::MetaList& metadata) {
  const json flag = setting(config, key);
  if (!flag.is_null() && !flag.is_boolean()) return config.bad(key, flag, "true or false");
  metadata.add(fmt::format("{}.{}", prefix, key), flag == true);
  return {};
}

// Programs read the list of "eagle_config" as blocks whose outputs count, and one beside the other keys as blocks whose
// inputs do, which are the outputs of those before them.
Result<std::vector<int64_t>> eagle_layers(const HubConfig& config) {
  const json* inputs = config.stated(kLayerIds);
  const json* others = config.stated("target_layer_ids");
  const json* group = config.stated("eagle_config");
  json ids = group == nullptr ? json() : value_at(*group, kLayerIds);
  if (ids.is_null() && others != nullptr) ids = *others;
  if (inputs != nullptr) ids = *inputs;
  std::vector<int64_t> layers;
  if (ids.is_null()) return layers;
  const auto is_id = [](const json& id) { return id.is_number_integer() && id >= -1 && id <= kMaxLayers; };
  if (!ids.is_array() || ids.empty() || !std::ranges::all_of(ids, is_id)) {
    return config.bad(kLayerIds, ids, "a list of blocks");
  }
  for (const json& id : ids) layers.push_back(id.get<int64_t>() + (inputs != nullptr ? 0 : 1));
  return layers;
}

}  // namespace

bool is_eagle_config(const json& config) {
  if (!config.is_object()) return false;
  if (config.contains("draft_vocab_size") || value_at(config, "speculators_model_type") == "eagle3") return true;
  const json classes = value_at(config, "architectures");
  return classes.is_array() && std::ranges::any_of(classes, [](const json& name) {
           return name.is_string() && name.get<std::string>().find("Eagle3") != std::string::npos;
         });
}

json flat_eagle_config(const json& config) {
  json flat = value_at(config, kLayerKey).is_object() ? config.at(kLayerKey) : json::object();
  for (const auto& [key, value] : config.items()) {
    if (key != kLayerKey && !(value.is_null() && flat.contains(key))) flat[key] = value;
  }
  flat["model_type"] = "llama";
  flat["tie_word_embeddings"] = false;  // an output matrix of its own is in the file, or it has none
  return flat;
}

Result<void> read_hub_eagle(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  for (const char* key : {"vocab_size", "attention_bias", "draft_vocab_size"}) config.stated(key);  // tensors say it
  for (const char* key : {"norm_before_residual", "norm_before_fc", "norm_output"}) {
    CANDOR_TRY(add_flag(config, key, prefix, metadata));
  }
  if (const json norms = setting(config, "fc_norm"); norms == true) {
    return config.unsupported("fc_norm", norms, "heads without a norm for each of the blocks that they read");
  }
  if (const json reads = setting(config, "use_aux_hidden_state"); reads == false) {
    return config.unsupported("use_aux_hidden_state", reads, "true");
  }
  CANDOR_ASSIGN(const uint64_t width, stated_count(config, "target_hidden_size"));
  if (width > 0) metadata.add(fmt::format("{}.target_hidden_size", prefix), width);
  CANDOR_ASSIGN(std::vector<int64_t> layers, eagle_layers(config));
  if (!layers.empty()) metadata.add(fmt::format("{}.target_layers", prefix), formats::MetaArray(std::move(layers)));
  return {};
}

std::string eagle_name(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  constexpr std::string_view kMiddle = "midlayer.";
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  if (!name.starts_with(kMiddle)) return std::string(name);
  return fmt::format("layers.0.{}", name.substr(kMiddle.size()));
}

Result<void> add_places(TensorView& offsets, const NewCopy& new_copy) {
  if (offsets.dtype != DType::kI64 || offsets.shape.n_dims != 1) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("tensor {}: {} {}; expected I64, a number for each of the head's tokens",
                    formats::in_quotes(offsets.name), dtype_info(offsets.dtype).name, to_string(offsets.shape)));
  }
  CANDOR_ASSIGN(std::byte * made, new_copy(offsets));
  for (int64_t i = 0; i < offsets.shape[0]; ++i) {
    const size_t at = static_cast<size_t>(i) * sizeof(int64_t);
    uint64_t id = 0;  // may wrap: ids that the model does not have are refused where it is known
    std::memcpy(&id, offsets.data + at, sizeof id);
    id += static_cast<uint64_t>(i);
    std::memcpy(made + at, &id, sizeof id);
  }
  offsets.data = made;
  return {};
}

}  // namespace candor::model
