#include "serve/openai/routes.h"

#include <string>

namespace candor::openai {
namespace {

using Shared = std::shared_ptr<http::Exchange>;

constexpr Route kRoutes[] = {
    {.method = "GET",
     .path = "/health",
     .needs_key = false,
     .is_quick = true,
     .handle = [](const Handlers& all, const Shared& exchange) { all.info.health(*exchange); }},
    {.method = "GET",
     .path = "/ready",
     .is_quick = true,
     .handle = [](const Handlers& all, const Shared& exchange) { all.info.ready(*exchange); }},
    {.method = "GET",
     .path = "/metrics",
     .handle = [](const Handlers& all, const Shared& exchange) { all.info.metrics(*exchange); }},
    {.method = "GET",
     .path = "/v1/models",
     .handle = [](const Handlers& all, const Shared& exchange) { all.info.models(*exchange); }},
    {.method = "GET",
     .path = "/v1/models/",
     .handle = [](const Handlers& all, const Shared& exchange) { all.info.model(*exchange); }},
    {.method = "POST",
     .path = "/v1/chat/completions",
     .generates = true,
     .handle = [](const Handlers& all, const Shared& exchange) { all.generations.generate(exchange, true); }},
    {.method = "POST",
     .path = "/v1/completions",
     .generates = true,
     .handle = [](const Handlers& all, const Shared& exchange) { all.generations.generate(exchange, false); }},
    {.method = "POST",
     .path = "/v1/embeddings",
     .generates = true,
     .handle = [](const Handlers& all, const Shared& exchange) { all.generations.embed(exchange); }},
    {.method = "POST",
     .path = "/tokenize",
     .handle = [](const Handlers& all, const Shared& exchange) { all.texts.tokenize(*exchange); }},
    {.method = "POST",
     .path = "/detokenize",
     .handle = [](const Handlers& all, const Shared& exchange) { all.texts.detokenize(*exchange); }},
    {.method = "POST",
     .path = "/apply-template",
     .handle = [](const Handlers& all, const Shared& exchange) { all.texts.apply_template(*exchange); }},
    {.method = "GET", .path = "/v1/stream", .is_socket = true},
};

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

const Route* find_route(const http::HttpRequest& request, bool& is_path_known) {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  is_path_known = false;
  for (const Route& route : routes()) {
    const bool is_prefix = route.path.ends_with('/');
    const bool fits = is_prefix ? request.path.starts_with(route.path) && request.path.size() > route.path.size()
                                : request.path == route.path;
    if (!fits) continue;
    is_path_known = true;
    if (route.method == method) return &route;
  }
  return nullptr;
}

}  // namespace candor::openai
