#pragma once
// Where a tower's weights come from: a GGUF file with general.architecture "clip" (llama.cpp's mmproj files), or the
// same folder as the text model's. Either is a ModelFile with GGUF's keys and names; tensors of text and audio are left
// out. Some are copies: matrices that files keep transposed, gains, and projections that early converters named the
// other way round.

#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "formats/model_file.h"

namespace candor::vision {

// A GGUF file; refused where it is no tower's.
Result<std::unique_ptr<formats::ModelFile>> open_mmproj(const std::filesystem::path& path);

// A folder of safetensors; nullptr where its model takes no images, or in no way that is known here.
Result<std::unique_ptr<formats::ModelFile>> open_tower_of(const std::filesystem::path& folder);

// The one file beside the model's that is named as an mmproj file (formats/companion_name.h). Several: an error that
// lists them.
Result<std::optional<std::filesystem::path>> mmproj_beside(const std::filesystem::path& model);

}  // namespace candor::vision
