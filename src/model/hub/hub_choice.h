#pragma once
// Finds the family, and its form (the layout of its checkpoints, hub_form.h), that reads a given config.json.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"
#include "model/families/families.h"
#include "model/hub/hub_form.h"

namespace candor::model {

struct FamilyForm {
  const Family* family = nullptr;
  const HubForm* form = nullptr;
  const HubOuter* outer = nullptr;  // of a multimodal model's checkpoint; nullptr: it holds the text model alone
};

// name: of the file, for errors. An unknown model_type is an error that names the three nearest known ones.
Result<FamilyForm> choose_form(const nlohmann::json& config, std::string_view name);

}  // namespace candor::model
