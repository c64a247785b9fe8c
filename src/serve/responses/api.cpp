#include "serve/responses/api.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "serve/core/api_request.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/core/stream_format.h"
#include "serve/http/exchange.h"
#include "serve/responses/requests.h"
#include "serve/responses/response_words.h"

namespace candor::serve::responses {
namespace {

using Shared = std::shared_ptr<http::Exchange>;

constexpr Endpoint kResponses{.parse = parse_response, .format = StreamFormat::kEvents, .id_prefix = kIdPrefix};

// The tokens that the same body would be told to have read, were it answered.
void count_input(const Core& core, http::Exchange& exchange) {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  auto asked = parse_response(*body, core.terms);
  if (!asked) return answer(exchange, asked.error());
  core.terms.settle(*asked);
  const Request& request = asked->requests.front();
  const auto tokens = core.engine.tokenize(request.prompt);
  if (!tokens) return answer(exchange, with_api_field(tokens.error(), asked->names));
  const auto n_tokens = static_cast<int64_t>(tokens->size());
  Json json = {{"object", "response.input_tokens"},
               {"input_tokens", std::min(n_tokens, request.max_prompt_tokens.value_or(n_tokens))}};
  if (!asked->warnings.empty()) json["warnings"] = asked->warnings;
  answer(exchange, json);
}

constexpr Route kRoutes[] = {
    {.method = "POST",
     .path = "/v1/responses",
     .generates = true,
     .handle = [](const Core& core, const Shared& exchange) { core.generations.generate(exchange, kResponses); },
     .loading = {.format = StreamFormat::kEvents, .words = early_frame, .last_words = early_failure}},
    {.method = "POST",
     .path = "/v1/responses/input_tokens",
     .handle = [](const Core& core, const Shared& exchange) { count_input(core, *exchange); }},
};

}  // namespace

const Api kApi{.name = "responses", .routes = kRoutes};

}  // namespace candor::serve::responses
