#include "apps/bench/cache_file.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

namespace candor::apps {

namespace fs = std::filesystem;

fs::path cache_file_of(std::string_view name) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && fs::path(cache).is_absolute())
    return fs::path(cache) / "candor" / name;
  const char* home = std::getenv("HOME");
  if (home == nullptr || !fs::path(home).is_absolute()) return {};
  return fs::path(home) / ".cache" / "candor" / name;
}

nlohmann::ordered_json read_cache(const fs::path& path) {
  std::ifstream file(path);
  auto json = nlohmann::ordered_json::parse(file, nullptr, false);
  return json.is_object() ? json : nlohmann::ordered_json::object();
}

bool write_cache(const fs::path& path, const nlohmann::ordered_json& json) {
  if (path.empty()) return false;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path temporary = path.string() + "." + std::to_string(::getpid());
  std::ofstream file(temporary);
  file << json.dump(1) << '\n';
  file.close();
  if (file) fs::rename(temporary, path, error);
  return file && !error;
}

}  // namespace candor::apps
