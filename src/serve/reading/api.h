#pragma once
// The routes of texts that are read: TEI's, Cohere's, Jina's and vLLM's.

#include "serve/core/api.h"

namespace candor::serve::reading {

extern const Api kApi;

}  // namespace candor::serve::reading
