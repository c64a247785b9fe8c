#pragma once
// What a store wrote of its things: objects in ID.json, whose "id" is the file's name. Others, and those in which
// `take` finds members of other types, are left out and left alone.

#include <filesystem>
#include <functional>

#include "serve/core/json_body.h"

namespace candor::serve {

void read_stored(const std::filesystem::path& folder, const std::function<void(const Json&)>& take);

}  // namespace candor::serve
