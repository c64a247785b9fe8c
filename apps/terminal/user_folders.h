#pragma once
// Where a user's files lie.

#include <filesystem>

namespace candor::apps {

// XDG_CACHE_HOME or ~/.cache, under candor; empty where neither is known.
std::filesystem::path user_cache_folder();
// XDG_DATA_HOME or ~/.local/share, under candor; so too.
std::filesystem::path user_data_folder();

}  // namespace candor::apps
