#pragma once
// Reads model.safetensors.index.json, which says in which file of a sharded checkpoint each tensor lies.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// The files that an index names, each of the folder itself. name: of the index, for errors.
Result<std::set<std::string>> shards_of(const nlohmann::json& index, std::string_view name);
// Every tensor that it names must be `present` in them. REQUIRES: shards_of() took it.
Result<void> check_index(const nlohmann::json& index, std::string_view name,
                         const std::set<std::string_view>& present);

// order: by name. folder: of errors, in quotes.
Result<void> refuse_duplicates(std::span<const TensorView> tensors, std::span<const uint32_t> order,
                               const std::string& folder);

}  // namespace candor::model
