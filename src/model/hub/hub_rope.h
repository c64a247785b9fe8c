#pragma once
// The one reader of rotary settings in config.json, whichever release of the `transformers` library wrote them:
// "rope_parameters" (for all blocks, or by kind of block), "rope_scaling" with "rope_type" or "type", and keys beside
// them ("rope_theta", "rotary_emb_base", "rope_local_base_freq", "partial_rotary_factor", "rotary_pct", "rotary_dim",
// "original_max_position_embeddings"). docs/models.md states which stands above which.

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_form.h"

namespace candor::model {

// Of all blocks, or of those that see everything and those with a window: objects with "rope_type", and "rope_theta"
// unless nothing is rotated. Null where the family rotates nothing.
struct HubRope {
  nlohmann::json full;
  nlohmann::json windowed;  // null: as the others
};

// All spellings united; null members are as absent. Refuses spellings that contradict each other, kinds of scaling
// that are not known, and scaling that lacks what its kind needs.
Result<HubRope> unite_rope(const HubConfig& config);

// Writes the settings under GGUF's keys below `prefix`. Factors that become tensors are hub_rope_factors.h's.
Result<void> read_hub_rope(const HubConfig& config, const HubRope& rope, const HubForm& form, std::string_view prefix,
                           formats::MetaList& metadata);

// YaRN's factor of lengths, 1 + 0.1 share ln(scale); 1 where scale is at most 1.
double yarn_length(double scale, double share);

// A member as a number; nothing where it is absent.
Result<std::optional<double>> rope_number(const HubConfig& config, const nlohmann::json& rope, const char* key);

}  // namespace candor::model
