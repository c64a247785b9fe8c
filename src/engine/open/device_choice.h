#pragma once
// The backend that the options ask for: by its name, or "auto", a GPU where there is one and the whole model fits its
// memory, else the CPU. Any thread.

#include <memory>

#include "backend/backend.h"
#include "base/error.h"
#include "candor/options.h"

namespace candor::engine {

Result<std::unique_ptr<backend::Backend>> make_named_backend(const EngineOptions& options);

}  // namespace candor::engine
