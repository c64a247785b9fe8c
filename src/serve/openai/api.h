#pragma once
// OpenAI's interface, with what vLLM and llama.cpp add to it, and the server's own pages (/health, /ready, /metrics).

#include "serve/core/api.h"
#include "serve/core/generations.h"

namespace candor::serve::openai {

extern const Api kApi;

extern const Endpoint kChat;
extern const Endpoint kCompletion;

}  // namespace candor::serve::openai
