#pragma once
// Goldens that were changed, and why they are refused.

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "backend/all/make_backend.h"
#include "formats/json_text.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "support/memory_model_file.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {

inline std::filesystem::path golden_folder(const std::string& name) {
  return goldens() / name;
}

inline void copy_tensor(const TensorView& tensor, const std::string& name, MemoryModelFile& copy) {
  copy.add_tensor(name, tensor.dtype, tensor.shape, {tensor.data, tensor.data + tensor.n_bytes});
}

// What stands in the way of the model; "" where it loads.
inline std::string refusal_of(const formats::ModelFile& file) {
  const auto backend = backend::make_backend("reference", {.n_threads = 1});
  const auto loaded = model::Model::load(file, **backend, {});
  return loaded ? std::string() : loaded.error().message;
}

// A copy of a golden's folder whose config.json is changed.
inline std::string refusal_with(const std::string& name, const std::function<void(nlohmann::json&)>& change) {
  const TempFolder folder;
  for (const std::filesystem::directory_entry& file : std::filesystem::directory_iterator(golden_folder(name))) {
    if (file.path().extension() != ".gguf") std::filesystem::copy(file.path(), folder.path() / file.path().filename());
  }
  nlohmann::json config = formats::read_json_file(folder.path() / "config.json", 1 << 20).value();
  change(config);
  std::ofstream(folder.path() / "config.json") << config.dump();
  const auto file = model::open_model(folder.path());
  return file ? refusal_of(**file) : file.error().message;
}

// A copy of a golden's GGUF file, to be changed. original: must outlive it.
inline MemoryModelFile copy_of_gguf(const formats::ModelFile& original) {
  MemoryModelFile file;
  file.set_format(original.info().format);
  for (const formats::MetaEntry& entry : original.metadata()) file.set(std::string(entry.key), entry.value);
  for (const TensorView& tensor : original.tensors()) copy_tensor(tensor, std::string(tensor.name), file);
  return file;
}

inline std::unique_ptr<formats::ModelFile> gguf_golden(const std::string& name) {
  return formats::open_model_file(golden_folder(name) / "model.gguf").value();
}

// A copy of a golden's GGUF file that is changed.
inline std::string refusal_of_gguf(const std::string& name, const std::function<void(MemoryModelFile&)>& change) {
  const auto original = gguf_golden(name);
  MemoryModelFile file = copy_of_gguf(*original);
  change(file);
  return refusal_of(file);
}

}  // namespace candor::testing
