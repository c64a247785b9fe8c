#pragma once
// The routes of llama.cpp's server that OpenAI's API has not: completions with its own words, filling in, what it says
// of itself, and reranking.

#include "serve/core/api.h"

namespace candor::serve::llama_cpp {

extern const Api kApi;

}  // namespace candor::serve::llama_cpp
