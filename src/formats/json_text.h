#pragma once
// Parses JSON from an untrusted file: bounded in size, depth and memory, duplicate keys refused. An error is one line
// with the name that the caller gives and the position in the text.

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"

namespace candor::formats {

inline constexpr size_t kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonMemory = size_t{256} << 20;  // of a value; the largest tokenizers take 170 MB

// name: what the text is called in errors, "'config.json'".
// remedy: how an error ends.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view name,
                                  std::string_view remedy = "download it again");

// The whole file; Infinity, as Python writes it, is 1e300. Larger ones are refused before they are read.
Result<nlohmann::json> read_json_file(const std::filesystem::path& path, size_t max_bytes);

}  // namespace candor::formats
