#include "apps/terminal/user_folders.h"

#include <cstdlib>

namespace candor::apps {
namespace {

namespace fs = std::filesystem;

// Empty where the variable names no absolute path.
fs::path folder_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && fs::path(value).is_absolute() ? fs::path(value) : fs::path();
}

fs::path user_folder(const char* variable, const char* in_home) {
  if (const fs::path named = folder_in(variable); !named.empty()) return named / "candor";
  const fs::path home = folder_in("HOME");
  return home.empty() ? home : home / in_home / "candor";
}

}  // namespace

fs::path user_cache_folder() {
  return user_folder("XDG_CACHE_HOME", ".cache");
}

fs::path user_data_folder() {
  return user_folder("XDG_DATA_HOME", ".local/share");
}

}  // namespace candor::apps
