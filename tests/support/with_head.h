#pragma once
// Heads of test models, each a file of its own. Those for multi-token prediction hold the model's last block that
// attends, again, and an even mixture of the token and the vector. EAGLE-3 heads have what the model had behind its
// last block, a small block of made-up numbers, and every second row of the model's output matrix. Such heads agree
// with their models now and then.

#include <filesystem>
#include <memory>

#include "support/memory_model_file.h"

namespace candor::testing {

// Of the model of the GGUF file.
std::unique_ptr<MemoryModelFile> make_head(const std::filesystem::path& model);
std::unique_ptr<MemoryModelFile> make_eagle(const std::filesystem::path& model);
// Written to `path`, which they return.
std::filesystem::path write_head(const std::filesystem::path& model, const std::filesystem::path& path);
std::filesystem::path write_eagle(const std::filesystem::path& model, const std::filesystem::path& path);

}  // namespace candor::testing
