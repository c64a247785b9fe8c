#pragma once
// Which family's form reads a config.json.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"
#include "model/families/families.h"
#include "model/hub/hub_form.h"

namespace candor::model {

struct FamilyForm {
  const Family* family = nullptr;
  const HubForm* form = nullptr;
  const HubOuter* outer = nullptr;  // of a folder of more than text
};

// name: of the file, for errors. An unknown model_type is an error that lists the known ones.
Result<FamilyForm> choose_form(const nlohmann::json& config, std::string_view name);

}  // namespace candor::model
