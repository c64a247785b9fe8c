#pragma once
// OpenAI's /v1/files and /v1/batches.

#include "serve/core/api.h"

namespace candor::serve::batch {

extern const Api kApi;

}  // namespace candor::serve::batch
