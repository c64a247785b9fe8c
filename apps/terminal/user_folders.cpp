#include "apps/terminal/user_folders.h"

#include <cstdlib>

namespace candor::apps {

namespace fs = std::filesystem;

fs::path user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && fs::path(cache).is_absolute())
    return fs::path(cache) / "candor";
  const char* home = std::getenv("HOME");
  if (home == nullptr || !fs::path(home).is_absolute()) return {};
  return fs::path(home) / ".cache" / "candor";
}

}  // namespace candor::apps
