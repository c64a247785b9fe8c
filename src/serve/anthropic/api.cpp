#include "serve/anthropic/api.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "serve/anthropic/requests.h"
#include "serve/core/api_request.h"
#include "serve/core/early_stream.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/core/stream_format.h"

namespace candor::serve::anthropic {
namespace {

using Shared = std::shared_ptr<http::Exchange>;

constexpr Endpoint kMessages{.parse = parse_message, .format = StreamFormat::kEvents, .id_prefix = "msg_"};

// Clients read the request's id under this name.
http::Headers headers_of(const http::Exchange& exchange, http::Headers headers) {
  headers.emplace_back("request-id", exchange.request().id);
  return headers;
}

void generate(const Core& core, const Shared& exchange) {
  const auto body = parse_body(exchange->request().body);
  auto request = body ? parse_message(*body, core.terms) : Result<ApiRequest>(body.error());
  if (request) request->headers = headers_of(*exchange, std::move(request->headers));
  core.generations.answer(exchange, std::move(request), kMessages);
}

// The very prompt that a message of this body is answered for.
void count_tokens(const Core& core, const Shared& exchange) {
  const auto body = parse_body(exchange->request().body);
  if (!body) return answer(*exchange, body.error());
  auto request = parse_counted(*body, core.terms);
  if (!request) return answer(*exchange, request.error());
  core.terms.settle(*request);
  const auto tokens = core.engine.tokenize(request->requests.front().prompt);
  if (!tokens) return answer(*exchange, with_api_field(tokens.error(), request->names));
  exchange->respond({.body = to_text({{"input_tokens", tokens->size()}}),
                     .headers = headers_of(*exchange, std::move(request->headers))});
}

std::string ping(const EarlyStream& /*stream*/) {
  return "event: ping\ndata: {\"type\":\"ping\"}\n\n";
}

constexpr Route kRoutes[] = {
    {.method = "POST",
     .path = "/v1/messages",
     .generates = true,
     .handle = generate,
     .loading = {.format = StreamFormat::kEvents, .words = ping}},
    {.method = "POST", .path = "/v1/messages/count_tokens", .handle = count_tokens},
};

}  // namespace

const Api kApi{.name = "anthropic", .routes = kRoutes, .error_form = tell_error};

}  // namespace candor::serve::anthropic
