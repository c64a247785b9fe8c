#pragma once
// Which model a command means. A first positional argument that names an existing file or folder, ends in .gguf or has
// the form user/repo[:quant] is the model; anything else is text. Left out, it is the model that ships with Candor.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::apps {

bool looks_like_model(std::string_view argument);

// The shipped model's file, beside the program or where an installation puts it; an error says where it was sought.
Result<std::filesystem::path> shipped_model();

struct ModelAndTexts {
  std::filesystem::path model;
  bool is_shipped = false;
  std::vector<std::string> texts;  // the positional arguments that are not the model
};

// option: the value of -m, if given. user/repo[:quant] is sought in the hub cache. Two models are refused.
Result<ModelAndTexts> choose_model(const std::optional<std::string>& option, std::vector<std::string> positionals);

}  // namespace candor::apps
