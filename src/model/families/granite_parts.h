#pragma once
// Granite's four multipliers, which its hybrids have too.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/arch_spec.h"
#include "model/hparams.h"

namespace candor::model {

// Of the embedding, the scores and the residual stream, and the divisor of the logits, which a file must have.
Result<void> add_multipliers(const Hparams& hparams, ArchSpec& spec);

// The same from config.json, and back.
Result<void> read_hub_multipliers(const nlohmann::json& config, std::string_view prefix, formats::MetaList& metadata);
void write_hub_multipliers(const ArchSpec& spec, nlohmann::ordered_json& config);

}  // namespace candor::model
