#pragma once
// Writes a model as a Hugging Face checkpoint: config.json, model.safetensors (a large one in shards with an index),
// tokenizer.json, tokenizer_config.json, generation_config.json. hub_folder.h reads the result back as the same model.
// Quantised tensors are written as the numbers that they decode to.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/error.h"
#include "formats/model_file.h"
#include "formats/write_report.h"
#include "tensor/dtype.h"

namespace candor::model {

struct HubWriteOptions {
  std::optional<DType> dtype;  // of matrices, F32, F16 or BF16; nothing: as they are, and F32 for quantised ones
  uint64_t max_shard_bytes = 5'000'000'000;  // of tensors in one file, as the hub's own tools split; one may be larger
  std::function<bool(uint64_t done_bytes, uint64_t total_bytes)> progress;  // false: stop
};

// folder: made if it is not there; old weights in it are replaced at the end.
Result<formats::WriteReport> write_hub_folder(const formats::ModelFile& file, const std::filesystem::path& folder,
                                              const HubWriteOptions& options);

}  // namespace candor::model
