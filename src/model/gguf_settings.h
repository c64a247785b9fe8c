#pragma once
// Settings of a GGUF file that it does not say, with what holds instead, as in llama.cpp; and what it suggests for
// generation ("general.sampling."), which options and requests decide.

#include <vector>

#include "formats/model_file.h"
#include "model/arch_spec.h"

namespace candor::model {

// Of the keys that converters have left out at some time. spec: read from the file. Empty for other formats.
std::vector<formats::AssumedSetting> assumed_of_gguf(const formats::ModelFile& file, const ArchSpec& spec);

std::vector<formats::AssumedSetting> suggested_of_gguf(const formats::ModelFile& file);

}  // namespace candor::model
