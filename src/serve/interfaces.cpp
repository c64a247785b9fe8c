#include "serve/interfaces.h"

#include <string_view>

#include "serve/llama_cpp/api.h"
#include "serve/anthropic/api.h"
#include "serve/ollama/api.h"
#include "serve/openai/api.h"
#include "serve/responses/api.h"

namespace candor::serve {
namespace {

const Api* const kInterfaces[] = {
    &openai::kApi,
    &llama_cpp::kApi,
    &anthropic::kApi,
    &responses::kApi,
    &ollama::kApi,
};

bool fits(const Route& route, std::string_view path) {
  const bool is_prefix = route.path.size() > 1 && route.path.ends_with('/');
  return is_prefix ? path.starts_with(route.path) && path.size() > route.path.size() : path == route.path;
}

}  // namespace

std::span<const Api* const> interfaces() {
  return kInterfaces;
}

const Route* find_route(const http::HttpRequest& request, bool& is_path_known) {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  is_path_known = false;
  for (const Api* api : interfaces()) {
    for (const Route& route : api->routes) {
      if (!fits(route, request.path)) continue;
      is_path_known = true;
      if (route.method == method) return &route;
    }
  }
  return nullptr;
}

http::ErrorForm error_form_at(const http::HttpRequest& request) {
  for (const Api* api : interfaces()) {
    for (const Route& route : api->routes) {
      if (fits(route, request.path)) return api->error_form;
    }
  }
  return nullptr;
}

}  // namespace candor::serve
