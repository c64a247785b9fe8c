#pragma once
// Writes a model's file or folder for the commands that make one: quantize, convert, merge.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"

namespace candor::apps {

struct FileOptions {
  std::string source;
  std::string target;
  std::string type;
  std::vector<std::string> tensor_types;
  int32_t n_threads = 0;
  bool naive_int8 = false;
  std::optional<std::string> imatrix{};
  std::optional<double> target_bits{};       // of a weight: types are chosen by measured errors
  std::optional<std::string> target_size{};  // the same of the file
  bool force = false;
};

// The model that is written.
using OpenModel = std::function<Result<std::unique_ptr<formats::ModelFile>>()>;

// Refuses a result that is one of its sources, and one that is there already, unless it may be replaced.
Result<void> check_target(const std::string& target, std::span<const std::string> sources, bool force);
// Whether a result of that name is a GGUF file; all others are folders.
bool is_gguf_name(const std::string& path);
// 0: so many as the machine has cores for.
int32_t write_threads(const FileOptions& options);
// Says what was written, or why it was not: the program's exit code. label: of the progress bar.
int write_model(const FileOptions& options, const OpenModel& open, const char* label);

}  // namespace candor::apps
