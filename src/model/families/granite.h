#pragma once
// Reads and writes Granite's multipliers: those of the embedding, the attention scores and the output of each
// sub-layer, and the divisor of the logits.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/arch_spec.h"
#include "model/hparams.h"

namespace candor::model {

// 1 where config.json is silent.
Result<void> read_hub_multipliers(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata);
void write_hub_multipliers(const ArchSpec& spec, nlohmann::ordered_json& config);
// Beside attention.scale, which the reader of attention takes.
Result<void> read_multipliers(const Hparams& hparams, ArchSpec& spec);

}  // namespace candor::model
