#include "apps/bench/cache_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

#include "apps/terminal/user_folders.h"

namespace candor::apps {

namespace fs = std::filesystem;

fs::path cache_file_of(std::string_view name) {
  const fs::path folder = user_cache_folder();
  return folder.empty() ? folder : folder / name;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVersionKey = "version";

Json read_object(const fs::path& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, false);
  return json.is_object() ? json : Json::object();
}

// Also where the version is no number: only a later program writes that.
bool is_later(const Json& json) {
  const auto version = json.find(kVersionKey);
  if (version == json.end()) return false;
  return !version->is_number_integer() || version->get<std::int64_t>() > kCacheVersion;
}

}  // namespace

Json read_cache(const fs::path& path) {
  Json json = read_object(path);
  if (is_later(json)) return Json::object();
  json.erase(kVersionKey);
  return json;
}

bool write_cache(const fs::path& path, const Json& json) {
  if (path.empty()) return false;
  if (is_later(read_object(path))) {
    fmt::print(stderr, "{}: written by a later candor, so it is left alone, and nothing is remembered\n", path.string());
    return false;
  }
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path temporary = path.string() + "." + std::to_string(::getpid());
  std::ofstream file(temporary);
  Json versioned = {{kVersionKey, kCacheVersion}};
  versioned.update(json);
  file << versioned.dump(1) << '\n';
  file.close();
  if (file) fs::rename(temporary, path, error);
  return file && !error;
}

}  // namespace candor::apps
