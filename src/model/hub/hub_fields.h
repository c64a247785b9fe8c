#pragma once
// Translates config.json into metadata under GGUF's keys: the hyperparameters that families share, each under any of
// the names that families give it. A setting that would change the arithmetic and has no key is refused by name.

#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_form.h"
#include "model/hub/hub_rope.h"

namespace candor::model {

// prefix: the family's, "llama". rope: unite_rope()'s.
Result<void> read_hub_fields(const HubConfig& config, const HubRope& rope, std::string_view prefix, const HubForm& form,
                             formats::MetaList& metadata);

}  // namespace candor::model
