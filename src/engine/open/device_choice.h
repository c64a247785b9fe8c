#pragma once
// The backend that the options ask for: by its name, or "auto", a GPU where there is one, else the CPU. A model that a
// GPU does not hold is computed by both (shared_device.h). Any thread.

#include <memory>
#include <string>

#include "backend/backend.h"
#include "base/error.h"
#include "candor/options.h"

namespace candor::engine {

// "cpu" for "auto", in a program without kernels for GPUs; else the same.
std::string settled_device(const std::string& device);

Result<std::unique_ptr<backend::Backend>> make_named_backend(const EngineOptions& options);

}  // namespace candor::engine
