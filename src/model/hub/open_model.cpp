#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_nvfp4.h"
#include "model/hub/joined_latents.h"
#include "model/hub/other_folders.h"

namespace candor::model {

namespace fs = std::filesystem;

Result<std::unique_ptr<formats::ModelFile>> open_model(const fs::path& path) {
  std::error_code ignored;
  fs::path folder;
  if (fs::is_directory(path, ignored)) folder = path;
  const std::string name = path.filename().string();
  if (name.ends_with(".safetensors") || name == "config.json" || name == "model.safetensors.index.json") {
    folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  }
  if (folder.empty() || !fs::exists(path, ignored)) {
    CANDOR_ASSIGN(std::unique_ptr<formats::ModelFile> file, formats::open_model_file(path));
    CANDOR_ASSIGN(file, with_joined_nvfp4(std::move(file)));
    return with_split_latents(std::move(file));
  }
  if (!fs::exists(folder / "config.json", ignored)) return refused_folder(folder);
  CANDOR_ASSIGN(std::unique_ptr<HubFolder> file, HubFolder::open(folder));
  return std::unique_ptr<formats::ModelFile>(std::move(file));
}

}  // namespace candor::model
