#pragma once
// Names of files that hold a head for multi-token prediction alone, as llama.cpp's converter gives them: "mtp-x.gguf"
// is no model, but the head of "x.gguf", beside which it stands.

#include <filesystem>

namespace candor::formats {

inline bool is_head_name(const std::filesystem::path& file) {
  return file.filename().string().starts_with("mtp-");
}

inline std::filesystem::path head_name_of(const std::filesystem::path& model) {
  return model.parent_path() / ("mtp-" + model.filename().string());
}

}  // namespace candor::formats
