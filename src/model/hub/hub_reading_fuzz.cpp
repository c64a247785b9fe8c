// Any bytes as the files of a folder that say how texts are read: refused in one line, or turned into metadata. A zero
// byte ends a file.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "formats/json_text.h"
#include "formats/meta_list.h"
#include "fuzz/fuzz_budget.h"
#include "model/hub/hub_reading.h"

namespace {

namespace fs = std::filesystem;

constexpr const char* kFiles[] = {"modules.json", "1_Pooling/config.json", "2_Dense/config.json",
                                  "config_sentence_transformers.json", "sentence_bert_config.json"};

// Of this process, while it runs.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("candor_reading_" + std::to_string(getpid()))) {
    fs::create_directories(path / "1_Pooling");
    fs::create_directories(path / "2_Dense");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  const fs::path path;
};

const fs::path& folder() {
  static const Folder made;
  return made.path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fs::path& place = folder();
  std::string_view left(reinterpret_cast<const char*>(data), size);
  const auto take = [&left] {
    const std::string_view part = left.substr(0, left.find('\0'));
    left.remove_prefix(std::min(left.size(), part.size() + 1));
    return part;
  };
  const std::string_view config = take();
  for (const char* name : kFiles) {
    const std::string_view part = take();
    if (part.empty()) {
      fs::remove(place / name);
    } else {
      std::ofstream(place / name, std::ios::binary) << part;
    }
  }
  const candor::testing::FuzzBudget budget(size);
  const auto json = candor::formats::parse_json(config, "'fuzz'");
  candor::formats::MetaList metadata;
  const auto read = candor::model::read_reading(place, json ? *json : nlohmann::json::object(), "bert", metadata);
  if (!read) {
    CANDOR_CHECK(read.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const candor::model::HeadFile& head : read->heads) {
    CANDOR_CHECK(!head.file.is_absolute() && head.file.string().find("..") == std::string::npos);
  }
  return 0;
}
