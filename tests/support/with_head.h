#pragma once
// Heads for multi-token prediction of test models: a file of their own, which holds the model's last block that
// attends, again, and an even mixture of the token and the vector. Such a head agrees with its model now and then.

#include <filesystem>
#include <memory>

#include "support/memory_model_file.h"

namespace candor::testing {

// Of the model of the GGUF file.
std::unique_ptr<MemoryModelFile> make_head(const std::filesystem::path& model);
// Written to `path`, which it returns.
std::filesystem::path write_head(const std::filesystem::path& model, const std::filesystem::path& path);

}  // namespace candor::testing
