#pragma once
// Ollama's interface: lines of JSON (NDJSON) that stream unless told not to, times in nanoseconds, arguments of calls as
// objects, null as absent, a model's name with or without ":latest". One model is served, the one that the server was
// started with: what would load, fetch or delete another says so.

#include "serve/core/api.h"

namespace candor::serve::ollama {

extern const Api kApi;

}  // namespace candor::serve::ollama
