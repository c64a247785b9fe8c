#pragma once
// Blocks for multi-token prediction as Qwen3-Next's and those after it are published (HubForm::prediction).

#include <array>

#include "model/hub/hub_form.h"

namespace candor::model {

inline constexpr std::array kApartPrediction = {
    HubRename{"mtp.fc.weight", "model.layers.*.eh_proj.weight"},
    HubRename{"mtp.norm.weight", "model.layers.*.shared_head.norm.weight"},
    HubRename{"mtp.pre_fc_norm_embedding.weight", "model.layers.*.enorm.weight"},
    HubRename{"mtp.pre_fc_norm_hidden.weight", "model.layers.*.hnorm.weight"},
    HubRename{"mtp.layers.*.", "model.layers.*."},
};

}  // namespace candor::model
