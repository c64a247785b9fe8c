#pragma once
// Names of GGUF files that are no model but stand beside one, as llama.cpp's converter gives them. "mtp-x.gguf" holds a
// head for multi-token prediction alone, the one of "x.gguf". "mmproj-x-f16.gguf" holds what reads images.

#include <filesystem>
#include <string>

namespace candor::formats {

inline bool is_head_name(const std::filesystem::path& file) {
  return file.filename().string().starts_with("mtp-");
}

inline std::filesystem::path head_name_of(const std::filesystem::path& model) {
  return model.parent_path() / ("mtp-" + model.filename().string());
}

inline bool is_mmproj_name(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".gguf") && name.find("mmproj") != std::string::npos;
}

inline bool is_companion_name(const std::filesystem::path& file) {
  return is_head_name(file) || is_mmproj_name(file);
}

}  // namespace candor::formats
