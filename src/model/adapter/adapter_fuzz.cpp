// Any bytes as an adapter of a small model: adapter_config.json and, behind a zero byte, adapter_model.safetensors; or,
// where they begin so, a GGUF file. Refused in one line, or read.

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "model/adapter/adapter.h"
#include "model/adapter/adapter_file.h"
#include "model/model.h"
#include "support/tiny_model.h"

namespace {

namespace fs = std::filesystem;

// Of this process, while it runs.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("candor_adapter_" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  const fs::path path;
};

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

candor::Result<void> read_adapter(const fs::path& path, const candor::formats::ModelFile& base) {
  CANDOR_ASSIGN(const candor::model::ArchSpec spec, candor::model::read_arch(base));
  CANDOR_ASSIGN(const auto adapter, candor::model::AdapterFile::open(path, spec, base));
  CANDOR_ASSIGN([[maybe_unused]] const auto lengths, candor::model::row_lengths(*adapter, spec, base));
  [[maybe_unused]] const uint64_t hash = adapter->hash();
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  static const auto base = candor::testing::make_tiny_model({});
  const candor::testing::FuzzBudget budget(size);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fs::path path = folder.path;
  if (bytes.starts_with("GGUF")) {
    path /= "adapter.gguf";
    write(path, bytes);
  } else {
    const size_t end = bytes.find('\0');
    write(path / "adapter_config.json", bytes.substr(0, end));
    write(path / "adapter_model.safetensors", end == std::string_view::npos ? "" : bytes.substr(end + 1));
  }
  const auto read = read_adapter(path, *base);
  if (!read) CANDOR_CHECK(read.error().message.find('\n') == std::string::npos);
  return 0;
}
