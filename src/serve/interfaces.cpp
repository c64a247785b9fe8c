#include "serve/interfaces.h"

#include <string_view>

#include "serve/anthropic/api.h"
#include "serve/batch/api.h"
#include "serve/llama_cpp/api.h"
#include "serve/ollama/api.h"
#include "serve/openai/api.h"
#include "serve/page/api.h"
#include "serve/reading/api.h"
#include "serve/receipts/api.h"
#include "serve/responses/api.h"

namespace candor::serve {
namespace {

const Api* const kInterfaces[] = {
    &page::kApi,  // first: browsers get it at "/"
    &openai::kApi, &llama_cpp::kApi, &anthropic::kApi, &responses::kApi,
    &ollama::kApi, &reading::kApi,   &batch::kApi,     &receipts::kApi,
};

bool fits(const Route& route, std::string_view path) {
  const bool is_prefix = route.path.size() > 1 && route.path.ends_with('/');
  return is_prefix ? path.starts_with(route.path) && path.size() > route.path.size() : path == route.path;
}

bool is_acceptable(const Route& route, const http::HttpRequest& request) {
  return route.accepts.empty() || request.header("accept").find(route.accepts) != std::string_view::npos;
}

}  // namespace

std::span<const Api* const> interfaces(bool has_page) {
  return std::span(kInterfaces).subspan(has_page ? 0 : 1);
}

const Route* find_route(std::span<const Api* const> apis, const http::HttpRequest& request, bool& is_path_known) {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  is_path_known = false;
  for (const Api* api : apis) {
    for (const Route& route : api->routes) {
      if (!fits(route, request.path) || !is_acceptable(route, request)) continue;
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
