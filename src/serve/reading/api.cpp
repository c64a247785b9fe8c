#include "serve/reading/api.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/http/exchange.h"
#include "serve/reading/requests.h"

namespace candor::serve::reading {
namespace {

using Shared = std::shared_ptr<http::Exchange>;
using Parse = Result<EmbeddingRequest> (*)(const Json& body, const RequestTerms& terms);

template <Parse parse>
void read(const Core& core, const Shared& exchange) {
  const auto body = parse_body(exchange->request().body);
  if (!body) return core.generations.embed(exchange, body.error());
  core.generations.embed(exchange, parse(*body, core.terms));
}

// Cohere's: tokens of a text of up to 65 536 bytes, as there.
void tokenize(const Core& core, const Shared& exchange) {
  constexpr size_t kMostBytes = 65536;
  const auto body = parse_body(exchange->request().body);
  if (!body) return answer(*exchange, body.error());
  Fields fields(*body);
  std::string model;
  check_model(fields, core.limits(), model);
  const std::string text = fields.text("text").value_or("");
  if (!fields.fault() && (text.empty() || text.size() > kMostBytes)) {
    fields.refuse("text", fmt::format("text has {} bytes, expected 1 to {}", text.size(), kMostBytes));
  }
  std::vector<std::string> warnings;
  settle_unknown(fields, core.limits(), warnings);
  if (fields.fault()) return answer(*exchange, *fields.fault());
  const auto tokens = core.engine.tokenize(TextPrompt{.text = text, .add_special = false});
  if (!tokens) return answer(*exchange, with_api_field(tokens.error(), {.prompt = "text"}));
  Json pieces = Json::array();
  for (const TokenId token : *tokens) pieces.push_back(core.engine.piece(token));
  answer(
      *exchange,
      Json{{"tokens", *tokens}, {"token_strings", std::move(pieces)}, {"meta", {{"api_version", {{"version", "1"}}}}}});
}

constexpr Route route(std::string_view path, void (*handle)(const Core&, const Shared&)) {
  return {.method = "POST", .path = path, .generates = true, .handle = handle};
}

constexpr Route kRoutes[] = {
    route("/embed", read<parse_embed>),
    route("/embed_all", read<parse_embed_all>),
    route("/embed_sparse", read<parse_embed_sparse>),
    route("/similarity", read<parse_similarity>),
    route("/v2/embed", read<parse_typed_embed>),
    route("/v1/embed", read<parse_plain_embed>),
    route("/rerank", read<parse_rerank>),
    route("/reranking", read<parse_rerank>),
    route("/v1/rerank", read<parse_rerank>),
    route("/v1/reranking", read<parse_rerank>),
    route("/v2/rerank", read<parse_rerank>),
    route("/score", read<parse_score>),
    route("/v1/score", read<parse_score>),
    route("/predict", read<parse_predict>),
    route("/classify", read<parse_classify>),
    route("/v1/classify", read<parse_classify>),
    {.method = "POST", .path = "/v1/tokenize", .handle = tokenize},
};

}  // namespace

const Api kApi{.name = "reading", .routes = kRoutes};

}  // namespace candor::serve::reading
