#pragma once
// Writes an architecture as a config.json that `transformers` and hub_config.h read: the reverse of hub_config.h.

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/hub/hub_form.h"

namespace candor::model {

// file: for what the spec does not hold (factors of "long rope"). Refuses rotations that config.json has no words for.
Result<nlohmann::ordered_json> write_hub_config(const ArchSpec& spec, const formats::ModelFile& file,
                                                const HubForm& form);

}  // namespace candor::model
