#pragma once
// The list of this server's APIs (OpenAI's, Anthropic's, Ollama's and so on), and the search for the route that a
// request is for.

#include <span>

#include "serve/core/api.h"
#include "serve/http/message.h"

namespace candor::serve {

// has_page: with the page for browsers, and what it asks.
std::span<const Api* const> interfaces(bool has_page = true);

// nullptr where nothing answers the request; is_path_known: but another method of its path. HEAD is answered by GET.
const Route* find_route(std::span<const Api* const> apis, const http::HttpRequest& request, bool& is_path_known);
// The form in which errors at that path are told; nullptr: OpenAI's.
http::ErrorForm error_form_at(const http::HttpRequest& request);

}  // namespace candor::serve
