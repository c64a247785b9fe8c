#pragma once
// Opens the safetensors of a checkpoint's folder: one file, or the shards that model.safetensors.index.json lists.

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "formats/safetensors/safetensors_file.h"

namespace candor::model {

// Appends them, in order, and notes their paths and sizes. Refuses pickles by name, and folders without weights.
Result<void> open_shards(const std::filesystem::path& folder, formats::FileInfo& info,
                         std::vector<formats::safetensors::SafetensorsFile>& shards);

}  // namespace candor::model
