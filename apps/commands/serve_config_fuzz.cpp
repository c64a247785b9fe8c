// Any bytes as the TOML file of `candor serve --config`: read, or refused in one line.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "fuzz/fuzz_budget.h"

namespace {

// Replaced by every input, removed at the end.
class ConfigFile {
 public:
  ConfigFile() : path_(std::filesystem::temp_directory_path() / fmt::format("candor_config_fuzz_{}.toml", getpid())) {}
  ~ConfigFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  void write(const uint8_t* data, size_t size) const {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void read_config(const std::string& path) {
  CLI::App app("", "candor");
  candor::apps::Action action;
  candor::apps::add_serve(app, action);
  try {
    app.parse("serve --config " + path);
  } catch (const CLI::ParseError& error) {
    const std::string message = candor::apps::explain_parse_error(app, error);
    if (!message.empty() && message.find('\n') == std::string::npos) return;
    std::fprintf(stderr, "fuzz: the error is not one line: \"%s\"\n", message.c_str());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ConfigFile file;
  const candor::testing::FuzzBudget budget(size);
  file.write(data, size);
  read_config(file.path());
  return 0;
}
