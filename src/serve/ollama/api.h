#pragma once
// Ollama's interface: lines of JSON (NDJSON) that stream unless told not to, times in nanoseconds, arguments of calls
// as objects, null as absent, a model's name with or without ":latest". It serves the models that the server was given
// when it was started: what would fetch, make or delete one says so.

#include "serve/core/api.h"

namespace candor::serve::ollama {

extern const Api kApi;

}  // namespace candor::serve::ollama
