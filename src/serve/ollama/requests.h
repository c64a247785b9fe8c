#pragma once
// Parses and checks request bodies of Ollama's API: each becomes an ApiRequest, the engine's requests with a maker of
// the reply.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/message_parts.h"
#include "serve/core/request_terms.h"

namespace candor::serve::ollama {

Result<ApiRequest> parse_chat(const Json& body, const RequestTerms& terms);
Result<ApiRequest> parse_generate(const Json& body, const RequestTerms& terms);
// POST /api/embed, and the older /api/embeddings for one text.
Result<EmbeddingRequest> parse_embed(const Json& body, const ApiLimits& limits);
Result<EmbeddingRequest> parse_embeddings(const Json& body, const ApiLimits& limits);

struct IdleReply {
  Json json{};
  std::optional<double> keep_alive{};  // in seconds
};

// A body that asks for no text only loads the model, or with keep_alive 0 lets it go: what is answered then. Nothing
// where there is work to do.
std::optional<Result<IdleReply>> idle_chat_reply(const Json& body, const ApiLimits& limits);
std::optional<Result<IdleReply>> idle_generate_reply(const Json& body, const ApiLimits& limits);
std::optional<Result<IdleReply>> idle_embed_reply(const Json& body, const ApiLimits& limits);
std::optional<Result<IdleReply>> idle_embeddings_reply(const Json& body, const ApiLimits& limits);

// The model that the body names ("model", or "name" as it was before) is the one that is served: else 404.
std::string read_model(Fields& fields, const ApiLimits& limits);
// keep_alive in seconds: a number, or a duration such as "5m".
std::optional<double> read_keep_alive(Fields& fields, const ApiLimits& limits, std::vector<std::string>& warnings);
// options, with Ollama's own defaults for what is not there; note: those that were taken.
SamplingParams read_options(Fields& fields, const ApiLimits& limits, ApiRequest& result);
// stream, format, think, keep_alive, truncate, logprobs and the like, into the one request. kwargs: variables of the
// template.
void read_common(Fields& fields, const RequestTerms& terms, ApiRequest& result, Request& request, Json& kwargs);
// images, in base64.
void read_images(Fields& fields, ImageFiles& files, MessageParts& parts);
// messages.
std::optional<std::vector<Message>> read_messages(Fields& fields, const RequestTerms& terms,
                                                  std::vector<std::string>& warnings);

}  // namespace candor::serve::ollama
