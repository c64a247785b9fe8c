#include "model/hub/hub_tasks.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace candor::model {

std::optional<std::string> name_without_tasks(std::string_view name) {
  constexpr std::string_view kOriginal = ".parametrizations.weight.original";
  constexpr std::string_view kAdapters = ".parametrizations.weight.0.lora_";
  if (name.find(kAdapters) != std::string_view::npos) return std::nullopt;
  if (!name.ends_with(kOriginal)) return std::string(name);
  return std::string(name.substr(0, name.size() - kOriginal.size())) + ".weight";
}

Result<void> read_tasks(const HubConfig& config, formats::MetaList& metadata) {
  const nlohmann::json* tasks = config.stated("lora_adaptations");
  if (tasks == nullptr || tasks->is_null()) return {};
  std::vector<std::string> names;
  for (const nlohmann::json& task : *tasks) {
    if (!task.is_string()) return config.bad("lora_adaptations", *tasks, "a list of names");
    names.push_back(task.get<std::string>());
  }
  if (!names.empty()) metadata.add_strings("candor.text.tasks", std::move(names));
  for (const char* key : {"lora_alpha", "lora_rank", "task_instructions", "lora_dropout_p",
                          "lora_main_params_trainable", "load_trained_adapters"}) {
    config.stated(key);  // read where an adapter is loaded
  }
  return {};
}

}  // namespace candor::model
