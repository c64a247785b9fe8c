#include "model/hub/other_folders.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "formats/json_text.h"
#include "formats/quote.h"

namespace candor::model {
namespace {

namespace fs = std::filesystem;
using formats::in_quotes;
using nlohmann::json;

constexpr size_t kMaxAdapterConfigBytes = size_t{1} << 20;
constexpr size_t kMaxEntries = 4096;  // that are looked at

// Names in the folder, in order.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end && names.size() < kMaxEntries; at.increment(ignored)) {
    names.insert(at->path().filename().string());
  }
  return names;
}

std::string first_ending(const std::set<std::string>& names, std::string_view end) {
  for (const std::string& name : names) {
    if (name.ends_with(end)) return name;
  }
  return {};
}

// " of 'user/base'", as adapter_config.json names it.
std::string base_of(const fs::path& folder) {
  const auto config = formats::read_json_file(folder / "adapter_config.json", kMaxAdapterConfigBytes);
  if (!config || !config->is_object()) return {};
  const json base = config->value("base_model_name_or_path", json());
  return base.is_string() ? fmt::format(" of {}", in_quotes(base.get<std::string>().substr(0, 200))) : std::string();
}

bool holds_adapter(const std::set<std::string>& names) {
  return names.contains("adapter_config.json") || names.contains("adapter_model.safetensors");
}

std::string reason_of(const fs::path& folder) {
  const std::set<std::string> names = names_in(folder);
  if (holds_adapter(names)) {
    return fmt::format(
        "is an adapter's folder (PEFT){} and no model: name its base model as the model, and this folder "
        "with --adapter; or make one model of both (candor merge)",
        base_of(folder));
  }
  if (names.contains("params.json") || names.contains("consolidated.safetensors") ||
      names.contains("consolidated.00.pth")) {
    return "is in its maker's own layout (params.json, consolidated weights), which is not read: get the same model "
           "with config.json and model.safetensors, or as a GGUF file";
  }
  if (names.contains("model_index.json")) {
    return "is a pipeline of several models (model_index.json): name the folder of a language model";
  }
  if (const std::string file = first_ending(names, ".gguf"); !file.empty()) {
    return fmt::format("is a folder of GGUF files: name one of them, such as {}", in_quotes((folder / file).string()));
  }
  if (names.contains("snapshots")) {
    return "is a model's place in a hub's cache: name the folder in its snapshots/ that holds config.json";
  }
  if (!first_ending(names, ".safetensors").empty()) {
    return "holds safetensors without config.json, which says what they are: download config.json and the "
           "tokenizer's files beside them";
  }
  return "is a folder without config.json: name a folder that holds config.json and model.safetensors, or a GGUF file";
}

// Beside config.json.
std::string missing_weights(const fs::path& folder) {
  const std::set<std::string> names = names_in(folder);
  if (holds_adapter(names)) return reason_of(folder);
  if (names.contains("consolidated.safetensors") || names.contains("consolidated.00.pth")) {
    return "holds its weights in their maker's own layout alone (consolidated weights), which is not read: download "
           "model.safetensors, or the model as a GGUF file";
  }
  if (const std::string file = first_ending(names, ".gguf"); !file.empty()) {
    return fmt::format("holds GGUF files and no safetensors: name one of them, such as {}",
                       in_quotes((folder / file).string()));
  }
  if (const std::string file = first_ending(names, ".safetensors"); !file.empty()) {
    return fmt::format("holds neither model.safetensors nor its index, but {}: download the index, or name the file "
                       "model.safetensors if it is the whole model",
                       in_quotes(file));
  }
  return "holds neither model.safetensors nor its index: download the weights";
}

}  // namespace

Error without_weights(const fs::path& folder) {
  return fail(ErrorKind::kNotFound, fmt::format("{}: {}", in_quotes(folder.string()), missing_weights(folder)));
}

Result<void> refuse_pickles(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    if (!name.ends_with(".bin") && !name.ends_with(".pt") && !name.ends_with(".pth")) continue;
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: is a Python pickle: unpickling can run code, so it is refused; get the model as "
                            "safetensors",
                            in_quotes((folder / name).string())));
  }
  return {};
}

Result<void> refuse_adapter(const fs::path& folder) {
  if (!holds_adapter(names_in(folder))) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("{}: holds an adapter (PEFT){} beside a whole model: move adapter_config.json and "
                          "adapter_model.safetensors into a folder of their own, which --adapter names; without it "
                          "the model runs without the adapter",
                          in_quotes(folder.string()), base_of(folder)));
}

Error refused_folder(const fs::path& folder) {
  return fail(ErrorKind::kUnsupported, fmt::format("{}: {}", in_quotes(folder.string()), reason_of(folder)));
}

}  // namespace candor::model
