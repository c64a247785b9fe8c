#pragma once
// Digests of files as the hub states them.

#include <filesystem>
#include <string>

#include "base/error.h"

namespace candor::hub {

// Lower-case hexadecimal.
Expected<std::string> sha256_of_file(const std::filesystem::path& path);
// Of "blob SIZE\0" and the content: what git calls a file.
Expected<std::string> git_sha1_of_file(const std::filesystem::path& path);

}  // namespace candor::hub
