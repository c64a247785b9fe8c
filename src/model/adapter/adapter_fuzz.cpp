// Any bytes as an adapter of a small model: adapter_config.json and, behind a zero byte, adapter_model.safetensors; or
// the same as a checkpoint's config.json and model.safetensors that hold the task "a"; or, where they begin so, a GGUF
// file. Refused in one line, or read.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "fuzz/fuzz_folder.h"
#include "model/adapter/adapter.h"
#include "model/adapter/adapter_file.h"
#include "model/model.h"
#include "support/tiny_model.h"

namespace {

namespace fs = std::filesystem;

candor::Result<void> read_adapter(const fs::path& path, const candor::formats::ModelFile& base) {
  CANDOR_ASSIGN(const candor::model::ArchSpec spec, candor::model::read_arch(base));
  CANDOR_ASSIGN(const auto adapter, candor::model::AdapterFile::open(path, spec, base, "a"));
  CANDOR_ASSIGN([[maybe_unused]] const auto lengths, candor::model::row_lengths(*adapter, spec, base));
  [[maybe_unused]] const uint64_t hash = adapter->hash();
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const candor::testing::FuzzFolder folder("candor_adapter");
  static const candor::testing::FuzzFolder checkpoint("candor_tasks");
  static const auto base = candor::testing::make_tiny_model({});
  const candor::testing::FuzzBudget budget(size);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fs::path path = folder.path();
  if (bytes.starts_with("GGUF")) {
    path = folder.write("adapter.gguf", bytes);
  } else {
    const size_t end = bytes.find('\0');
    const std::string_view config = bytes.substr(0, end);
    const std::string_view tensors = end == std::string_view::npos ? "" : bytes.substr(end + 1);
    const bool has_tasks = config.find("lora_adaptations") != std::string_view::npos;
    if (has_tasks) path = checkpoint.path();
    (has_tasks ? checkpoint : folder).write(has_tasks ? "config.json" : "adapter_config.json", config);
    (has_tasks ? checkpoint : folder).write(has_tasks ? "model.safetensors" : "adapter_model.safetensors", tensors);
  }
  const auto read = read_adapter(path, *base);
  if (!read) CANDOR_CHECK(read.error().message.find('\n') == std::string::npos);
  return 0;
}
