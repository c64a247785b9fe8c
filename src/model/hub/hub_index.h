#pragma once
// Reads model.safetensors.index.json, which says in which file of a sharded checkpoint each tensor lies.

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"

namespace candor::model {

// The files that an index names, each of the folder itself. name: of the index, for errors.
Result<std::set<std::string>> shards_of(const nlohmann::json& index, std::string_view name);
// Every tensor that it names must be `present` in them. REQUIRES: shards_of() took it.
Result<void> check_index(const nlohmann::json& index, std::string_view name,
                         const std::set<std::string_view>& present);

}  // namespace candor::model
