#pragma once
// Reads the text model out of a Hugging Face checkpoint of a multimodal model (HubOuter in hub_form.h): the text
// model's own configuration, and the names that its tensors have in a checkpoint of the text model alone. And names of
// tensors in checkpoints of a base model, which was saved without a head.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/safetensors/safetensors_file.h"
#include "model/hub/hub_form.h"

namespace candor::model {

// In text_config, how many of the first blocks get more of an image: the number of "vision_config"'s
// "deepstack_visual_indexes".
inline constexpr const char* kDeepKey = "n_deepstack_layers";

// config's "text_config" (of a flat one, what is not of images), with what the whole says of tied heads and of how
// weights are packed. name: of the file, for errors.
Result<nlohmann::json> text_config_of(const nlohmann::json& config, std::string_view name);

// Nothing where the tensor is not the text's.
std::optional<std::string> name_in_text(std::string_view name, const HubOuter& outer);

// How the form's names begin ("model."), where no tensor of the checkpoint is named so, as in those of a base model;
// else "".
std::string_view missing_stem(const HubForm& form, std::span<const formats::safetensors::SafetensorsFile> shards);
// The name behind the stem, unless the form knows it without.
std::string with_stem(std::string_view name, std::string_view stem, const HubForm& form);

}  // namespace candor::model
