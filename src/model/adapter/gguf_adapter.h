#pragma once
// Adapters in GGUF files: "general.type" is "adapter", "adapter.type" is "lora", "adapter.lora.alpha" a number; each
// matrix of the base model, by its name there, with ".lora_a" [rank, in] (of the embedding [V, rank]) and ".lora_b"
// [out, rank] behind it; of experts with a dimension more in front.

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/adapter/adapter_file.h"
#include "model/families/families.h"

namespace candor::model {

class GgufAdapterReader {
 public:
  // Borrowed.
  GgufAdapterReader(const std::filesystem::path& path, const ArchSpec& spec, const Family& family)
      : path_(path), spec_(spec), family_(family) {}

  Result<std::unique_ptr<AdapterFile>> read();

 private:
  Result<void> check_metadata();
  Result<void> read_parts();

  const std::filesystem::path& path_;
  const ArchSpec& spec_;
  const Family& family_;
  std::unique_ptr<AdapterFile> file_;
  double alpha_ = 0.0;  // 0: scales are 1
};

}  // namespace candor::model
