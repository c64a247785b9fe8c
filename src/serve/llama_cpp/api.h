#pragma once
// The routes of llama.cpp's server that OpenAI's API lacks: /completion with llama.cpp's own fields, /infill,
// information about the server, and reranking.

#include "serve/core/api.h"

namespace candor::serve::llama_cpp {

extern const Api kApi;

}  // namespace candor::serve::llama_cpp
