#pragma once
// Translates config.json into metadata under GGUF's keys: the hyperparameters that families share, each under any of
// the names that families give it, and rotary scaling. A setting that would change the arithmetic and has no key is
// refused by name.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/hub/hub_form.h"

namespace candor::model {

// A number of config.json; nothing where it is absent or null.
Result<std::optional<double>> hub_number(const nlohmann::json& config, const char* key);

// The same of true and false.
Result<std::optional<bool>> hub_flag(const nlohmann::json& config, const char* key);

// The number with the fewest digits that is the same float: what config.json says of it.
double shortest_decimal(float value);

// prefix: the family's, "llama". name: of the file, for errors.
Result<void> read_hub_config(const nlohmann::json& config, std::string_view prefix, std::string_view name,
                             const HubForm& form, formats::MetaList& metadata);

// The divisors of frequencies by Llama 3's rule, or where only a part of a head's pairs turns ("proportional", the
// others' being endless), as "rope_freqs.weight" holds them; empty where config.json has another rule.
Result<std::vector<float>> rope_factors(const nlohmann::json& config, std::string_view name);

}  // namespace candor::model
