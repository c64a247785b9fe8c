#pragma once
// What generation_config.json suggests for generation and Candor does not take: options and requests decide.

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"

namespace candor::model {

// Every key of it but the ids of tokens, which are read with the vocabulary, and null. Empty where there is no file;
// refuses one that is no JSON object.
Result<std::vector<formats::AssumedSetting>> suggested_settings(const std::filesystem::path& folder);

}  // namespace candor::model
