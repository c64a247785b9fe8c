#pragma once
// What a folder without config.json, or without weights, is, in one line that says what to name instead: adapters,
// Mistral's own layout, pipelines, a hub's cache, GGUF files.

#include <filesystem>

#include "base/error.h"

namespace candor::model {

// REQUIRES: the folder holds no config.json.
Error refused_folder(const std::filesystem::path& folder);
// REQUIRES: the folder holds config.json and no safetensors of a model.
Error without_weights(const std::filesystem::path& folder);

// Refuses a folder's weights that are pickled.
Result<void> refuse_pickles(const std::filesystem::path& folder);

// Refuses a model's folder that holds an adapter too: the library would add it to the weights.
Result<void> refuse_adapter(const std::filesystem::path& folder);

}  // namespace candor::model
