#include "serve/reading/api.h"

#include <memory>
#include <nlohmann/json.hpp>

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

constexpr Route route(std::string_view path, void (*handle)(const Core&, const Shared&)) {
  return {.method = "POST", .path = path, .generates = true, .handle = handle};
}

constexpr Route kRoutes[] = {
    route("/embed", read<parse_embed>),
    route("/embed_all", read<parse_embed_all>),
    route("/embed_sparse", read<parse_embed_sparse>),
    route("/similarity", read<parse_similarity>),
    route("/v2/embed", read<parse_typed_embed>),
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
};

}  // namespace

const Api kApi{.name = "reading", .routes = kRoutes};

}  // namespace candor::serve::reading
