#pragma once
// Files of what was measured on this machine, in the user's cache folder (XDG_CACHE_HOME or ~/.cache, under candor).
// One that is missing or damaged is empty; one that cannot be written is not: what was measured is measured again.
// "version" in a file says how its entries are written (kCacheVersion; none: as in version 1). A file of a later version
// is empty for this program, is left alone, and a line on standard error says so.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace candor::apps {

// Empty where no folder is known.
std::filesystem::path cache_file_of(std::string_view name);
inline constexpr std::int64_t kCacheVersion = 1;

// An object of entries, without the version.
nlohmann::ordered_json read_cache(const std::filesystem::path& path);
// Whole or not at all. False where it cannot be written, or is of a later version.
bool write_cache(const std::filesystem::path& path, const nlohmann::ordered_json& json);

}  // namespace candor::apps
