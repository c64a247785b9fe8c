#pragma once
// Digests of files in the form in which a model hub (Hugging Face's protocol, pull.h) states them.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"

namespace candor::hub {

// Called now and then with the bytes read so far; false stops. May be empty.
using DigestProgress = std::function<bool(uint64_t done_bytes)>;

// Lower-case hexadecimal.
Result<std::string> sha256_of_file(const std::filesystem::path& path, const DigestProgress& progress = {});
// Of "blob SIZE\0" and the content: what git calls a file.
Result<std::string> git_sha1_of_file(const std::filesystem::path& path, const DigestProgress& progress = {});

}  // namespace candor::hub
