#pragma once
// Checkpoints that hold adapters for tasks among their own weights (adapter/task_adapter.h), as models without them.
// Pure; any thread.

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/hub/hub_config.h"

namespace candor::model {

// "MODULE.parametrizations.weight.original" -> "MODULE.weight"; nothing of an adapter's own. Others stay.
std::optional<std::string> name_without_tasks(std::string_view name);

// The names of its tasks.
Result<void> read_tasks(const HubConfig& config, formats::MetaList& metadata);

}  // namespace candor::model
