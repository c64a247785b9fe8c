#pragma once
// Anthropic's interface: POST /v1/messages, plain and streamed, and /v1/messages/count_tokens.

#include "serve/core/api.h"

namespace candor::serve::anthropic {

extern const Api kApi;

// Anthropic's shape of an error, with its own statuses: 529 where we are busy.
void tell_error(http::HttpResponse& response, const http::HttpRequest& request);

}  // namespace candor::serve::anthropic
