#pragma once
// The divisors of rotary frequencies that GGUF files keep as tensors, from the rotary settings of config.json.

#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_rope.h"

namespace candor::model {

struct RopeFactors {
  std::string_view name;  // of the tensor
  std::vector<float> values;
};

// By Llama 3's rule, or where only a part of a head's pairs rotates ("proportional", the others' being endless):
// "rope_freqs.weight". Of long rope, which lists them: "rope_factors_long.weight" and "rope_factors_short.weight".
// Empty where config.json has another rule.
Result<std::vector<RopeFactors>> rope_factors(const HubConfig& config, const HubRope& rope);

}  // namespace candor::model
