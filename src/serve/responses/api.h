#pragma once
// The Responses API: POST /v1/responses and /v1/responses/input_tokens, by the schema of Open Responses. Nothing is
// stored: each request brings its whole conversation.

#include "serve/core/api.h"

namespace candor::serve::responses {

extern const Api kApi;

}  // namespace candor::serve::responses
