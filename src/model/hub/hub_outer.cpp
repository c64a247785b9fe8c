#include "model/hub/hub_outer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/hub/hub_names.h"

namespace candor::model {
namespace {

using nlohmann::json;

struct Stem {
  std::string_view there;
  std::string_view here;
};
constexpr Stem kStems[] = {{"model.language_model.", "model."},
                           {"model.text_model.", "model."},
                           {"language_model.model.", "model."},
                           {"language_model.lm_head.", "lm_head."}};

// Early folders (Qwen2.5-VL) have the text's keys beside those of the whole.
json flat_text(const json& config) {
  json own = config;
  for (const char* key : {"vision_config", "image_token_id", "video_token_id", "vision_start_token_id",
                          "vision_end_token_id", "vision_token_id"}) {
    own.erase(key);
  }
  return own;
}

}  // namespace

Result<json> text_config_of(const json& config, std::string_view name) {
  const auto text = config.find("text_config");
  const bool is_flat = text == config.end() && config.contains("vision_config");
  if (is_flat) return flat_text(config);
  if (text == config.end() || !text->is_object()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: \"text_config\" is absent, which describes the text", name));
  }
  json own = *text;
  for (const char* key : {"tie_word_embeddings", "quantization_config"}) {
    const auto value = config.find(key);
    if (value != config.end() && !value->is_null()) own[key] = *value;
  }
  const auto vision = config.find("vision_config");
  if (vision == config.end() || !vision->is_object()) return own;
  if (const auto deep = vision->find("deepstack_visual_indexes");
      deep != vision->end() && deep->is_array() && !deep->empty()) {
    own[kDeepKey] = deep->size();
  }
  return own;
}

std::optional<std::string> name_in_text(std::string_view name, const HubOuter& outer) {
  const auto begins = [name](std::string_view stem) { return name.starts_with(stem); };
  if (std::ranges::any_of(outer.left_out, begins)) return std::nullopt;
  for (const Stem& stem : kStems) {
    if (begins(stem.there)) return std::string(stem.here).append(name.substr(stem.there.size()));
  }
  return std::string(name);
}

std::string_view missing_stem(const HubForm& form, std::span<const formats::safetensors::SafetensorsFile> shards) {
  if (form.rename != nullptr) return {};
  const std::string_view first = form.tensors.front().hub;
  const std::string_view stem = first.substr(0, first.find('.') + 1);
  for (const auto& shard : shards) {
    for (const TensorView& tensor : shard.tensors()) {
      if (tensor.name.find(stem) != std::string_view::npos) return {};
    }
  }
  return stem;
}

std::string with_stem(std::string_view name, std::string_view stem, const HubForm& form) {
  const auto is_name = [name](std::string_view pattern) { return match_name(pattern, name).has_value(); };
  const bool is_known =
      std::ranges::any_of(form.tensors, is_name, &HubTensor::hub) || std::ranges::any_of(form.ignored, is_name);
  return is_known ? std::string(name) : std::string(stem).append(name);
}

}  // namespace candor::model
