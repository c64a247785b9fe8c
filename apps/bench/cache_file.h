#pragma once
// Files of what was measured on this machine, in the user's cache folder (XDG_CACHE_HOME or ~/.cache, under candor).
// One that is missing or damaged is empty; one that cannot be written is not: what was measured is measured again.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace candor::apps {

// Empty where no folder is known.
std::filesystem::path cache_file_of(std::string_view name);
// An object.
nlohmann::ordered_json read_cache(const std::filesystem::path& path);
// Whole or not at all. False where it cannot be written.
bool write_cache(const std::filesystem::path& path, const nlohmann::ordered_json& json);

}  // namespace candor::apps
