#pragma once
// The adapters that a request uses. Any thread.

#include "base/error.h"
#include "candor/request.h"
#include "engine/request/active_request.h"
#include "engine/request/adapter_registry.h"

namespace candor::engine {

// By the order of their names, those whose scale is 0 left out; the keys of the prefix cache know them.
Result<void> choose_adapters(const Request& request, const AdapterRegistry& registry, ActiveRequest& active);

}  // namespace candor::engine
