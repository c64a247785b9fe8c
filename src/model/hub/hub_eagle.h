#pragma once
// Folders of EAGLE-3 heads (model/eagle.h) in the forms in which they are published: SafeAILab's and SpecForge's, whose
// config.json is that of a Llama with keys besides, and that of the library `speculators`, which has the block's keys
// in "transformer_layer_config". Pure functions; any thread.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_state.h"
#include "tensor/tensor_view.h"

namespace candor::model {

bool is_eagle_config(const nlohmann::json& config);
// All keys beside one another, as of a Llama; "is it a head" stays true.
nlohmann::json flat_eagle_config(const nlohmann::json& config);

// HubForm::read.
Result<void> read_hub_eagle(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata);

// "midlayer.mlp.up_proj.weight" and "model.midlayer.mlp.up_proj.weight": "layers.0.mlp.up_proj.weight".
std::string eagle_name(std::string_view name);

// The table of a head's tokens: [n] I64 offsets, token i of the head being token i + offset of the model, become the
// model's tokens, in new memory.
Result<void> add_places(TensorView& offsets, const NewCopy& new_copy);

}  // namespace candor::model
