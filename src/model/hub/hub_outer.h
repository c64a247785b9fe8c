#pragma once
// Folders of more than text (hub_form.h, HubOuter): the configuration of the text, and what its tensors are called
// where it stands alone.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/hub/hub_form.h"

namespace candor::model {

// config's "text_config", with what the whole says of tied heads and of how weights are packed. name: of the file, for
// errors.
Result<nlohmann::json> text_config_of(const nlohmann::json& config, std::string_view name);

// Nothing where the tensor is not the text's.
std::optional<std::string> name_in_text(std::string_view name, const HubOuter& outer);

}  // namespace candor::model
