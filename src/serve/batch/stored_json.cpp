#include "serve/batch/stored_json.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

namespace candor::serve {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 20;

}  // namespace

void read_stored(const std::filesystem::path& folder, const std::function<void(const Json&)>& take) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    if (at->path().extension() != ".json" || !at->is_regular_file(ignored) || at->file_size(ignored) > kMaxBytes)
      continue;
    std::ifstream file(at->path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto json = parse_body(text);
    if (!json || !json->contains("id") || (*json)["id"] != at->path().stem().string()) continue;
    try {
      take(*json);
    } catch (const Json::exception&) {
      continue;
    }
  }
}

}  // namespace candor::serve
