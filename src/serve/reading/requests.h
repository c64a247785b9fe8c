#pragma once
// Parses request bodies of texts that are read: each becomes an EmbeddingRequest, the engine's requests with the writer
// of the reply.

#include "serve/core/api_request.h"
#include "serve/core/json_body.h"
#include "serve/core/request_terms.h"

namespace candor::serve::reading {

// TEI's /embed: {"inputs"}, a list of vectors; /embed_sparse: weights of words; /embed_all: a vector for each token;
// /similarity: how alike sentences are.
Result<EmbeddingRequest> parse_embed(const Json& body, const RequestTerms& terms);
Result<EmbeddingRequest> parse_embed_sparse(const Json& body, const RequestTerms& terms);
Result<EmbeddingRequest> parse_embed_all(const Json& body, const RequestTerms& terms);
Result<EmbeddingRequest> parse_similarity(const Json& body, const RequestTerms& terms);
// Cohere's /v2/embed: {"texts", "embedding_types"}; and /v1/embed, which lists vectors where no types are asked for.
Result<EmbeddingRequest> parse_typed_embed(const Json& body, const RequestTerms& terms);
Result<EmbeddingRequest> parse_plain_embed(const Json& body, const RequestTerms& terms);

// Documents by how well they answer a query: {"query", "documents"} of Jina and Cohere, {"query", "texts"} of TEI. By
// the model's own head; by the cosines of embeddings only where the server was told so (ranks_by_likeness).
Result<EmbeddingRequest> parse_rerank(const Json& body, const RequestTerms& terms);
// vLLM's /score: {"text_1", "text_2"}.
Result<EmbeddingRequest> parse_score(const Json& body, const RequestTerms& terms);

// TEI's /predict: {"inputs"}, and vLLM's /classify: {"input"}.
Result<EmbeddingRequest> parse_predict(const Json& body, const RequestTerms& terms);
Result<EmbeddingRequest> parse_classify(const Json& body, const RequestTerms& terms);

}  // namespace candor::serve::reading
