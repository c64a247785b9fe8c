#pragma once
// Architectures that the engine knows by name but cannot compute, each with what it lacks for them: the text of the
// error that refuses such a model.

#include <span>
#include <string_view>

namespace candor::model {

struct MissingFamily {
  std::string_view name;  // model_type of config.json, or general.architecture of GGUF
  std::string_view need;
};

std::span<const MissingFamily> missing_families();

// ": it needs ...", or "" where the name is not known.
std::string_view need_of(std::string_view name);

}  // namespace candor::model
