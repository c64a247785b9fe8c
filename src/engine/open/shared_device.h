#pragma once
// One model on a device and the host together: which parts the device has, by what the options say or by what makes a
// token quickest within its memory. The bits are those of each alone. Any thread.

#include <memory>

#include "backend/backend.h"
#include "base/error.h"
#include "candor/options.h"
#include "formats/model_file.h"

namespace candor::engine {

// Refused where the options want more on the device than it holds.
Result<std::unique_ptr<backend::Backend>> share_with_host(const EngineOptions& options, const formats::ModelFile& file,
                                                          std::unique_ptr<backend::Backend> device,
                                                          std::unique_ptr<backend::Backend> host);

}  // namespace candor::engine
