#pragma once
// Translates config.json into metadata under GGUF's keys: the hyperparameters that families share, each under any of
// the names that families give it. A setting that would change the arithmetic and has no key is refused by name.

#include <cstdint>
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

// Of the key behind the family's prefix: 0 where it is absent; of a list, which has 0 for some blocks, its largest.
int64_t largest_count(const formats::MetaList& metadata, std::string_view suffix);

}  // namespace candor::model
