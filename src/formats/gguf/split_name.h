#pragma once
// Names of the parts of a split model: "PREFIX-00002-of-00003.gguf" is part 2 of 3, counted from 1.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace candor::formats::gguf {

struct SplitName {
  std::string prefix;
  int64_t part = 0;  // from 1
  int64_t n_parts = 0;
};

// Empty when the file's name has not this form, or says a part outside [1, n_parts].
std::optional<SplitName> parse_split_name(const std::filesystem::path& path);

// The path of another part, beside `path`. REQUIRES: 1 <= part <= name.n_parts.
std::filesystem::path split_part_path(const std::filesystem::path& path, const SplitName& name, int64_t part);

}  // namespace candor::formats::gguf
