#include "serve/ollama/api.h"

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/utf8.h"
#include "serve/core/api_request.h"
#include "serve/core/early_stream.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/core/stream_format.h"
#include "serve/ollama/info_routes.h"
#include "serve/ollama/replies.h"
#include "serve/ollama/requests.h"

namespace candor::serve::ollama {
namespace {

using Shared = std::shared_ptr<http::Exchange>;
using IdleReader = std::optional<Result<IdleReply>> (*)(const Json& body, const ApiLimits& limits);

const Endpoint kChat{.parse = parse_chat, .format = StreamFormat::kLines};
const Endpoint kGenerate{.parse = parse_generate, .format = StreamFormat::kLines};

// True where the body asks for nothing, and has its reply.
bool answer_idle(const Core& core, const Shared& exchange, const Json& body, IdleReader idle_reply) {
  const auto reply = idle_reply(body, core.limits());
  if (!reply) return false;
  if (*reply) {
    if ((*reply)->keep_alive && core.keep_alive) core.keep_alive(*(*reply)->keep_alive);
    answer(*exchange, (*reply)->json);
  } else {
    answer(*exchange, reply->error());
  }
  return true;
}

void generate(const Core& core, const Shared& exchange, const Endpoint& endpoint, IdleReader idle_reply) {
  const auto body = parse_body(exchange->request().body);
  if (!body) return core.generations.answer(exchange, body.error(), endpoint);
  if (answer_idle(core, exchange, *body, idle_reply)) return;
  core.generations.answer(exchange, endpoint.parse(*body, core.terms), endpoint);
}

void embed(const Core& core, const Shared& exchange, Result<EmbeddingRequest> (*parse)(const Json&, const ApiLimits&),
           IdleReader idle_reply) {
  const auto body = parse_body(exchange->request().body);
  if (!body) return core.generations.embed(exchange, body.error());
  if (answer_idle(core, exchange, *body, idle_reply)) return;
  core.generations.embed(exchange, parse(*body, core.limits()));
}

// {"error": "text"}, which names the field.
void tell_error(http::HttpResponse& response, const http::HttpRequest&) {
  constexpr size_t kMostMessage = 4096;
  const Error& error = response.failure->error;
  const bool is_named = error.message.find(error.field) != std::string::npos;
  const std::string words = is_named ? error.message : error.field + ": " + error.message;
  response.body = to_text(Json{{"error", clipped(words, kMostMessage)}});
}

void refuse_change(const ServerCore& core, const Shared& exchange) {
  InfoRoutes(core).refuse_change(*exchange);
}

// An empty line of the reply.
std::string loading_chat(const EarlyStream& stream) {
  return to_text(waiting_line(stream.model, true)) + "\n";
}
std::string loading_text(const EarlyStream& stream) {
  return to_text(waiting_line(stream.model, false)) + "\n";
}

constexpr Route kRoutes[] = {
    {.method = "GET",
     .path = "/",
     .is_quick = true,
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).root(*exchange); }},
    {.method = "GET",
     .path = "/api/version",
     .is_quick = true,
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).version(*exchange); }},
    {.method = "GET",
     .path = "/api/tags",
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).tags(*exchange); }},
    {.method = "GET",
     .path = "/api/ps",
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).running(*exchange); }},
    {.method = "POST",
     .path = "/api/show",
     .handle = [](const Core& core, const Shared& exchange) { show(core, *exchange); }},
    {.method = "POST",
     .path = "/api/chat",
     .generates = true,
     .handle = [](const Core& core, const Shared& exchange) { generate(core, exchange, kChat, idle_chat_reply); },
     .loading = {.format = StreamFormat::kLines, .streams_unasked = true, .words = loading_chat}},
    {.method = "POST",
     .path = "/api/generate",
     .generates = true,
     .handle = [](const Core& core,
                  const Shared& exchange) { generate(core, exchange, kGenerate, idle_generate_reply); },
     .loading = {.format = StreamFormat::kLines, .streams_unasked = true, .words = loading_text}},
    {.method = "POST",
     .path = "/api/embed",
     .generates = true,
     .handle = [](const Core& core, const Shared& exchange) { embed(core, exchange, parse_embed, idle_embed_reply); }},
    {.method = "POST",
     .path = "/api/embeddings",
     .generates = true,
     .handle = [](const Core& core,
                  const Shared& exchange) { embed(core, exchange, parse_embeddings, idle_embeddings_reply); }},
    {.method = "POST",
     .path = "/api/pull",
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).pull(*exchange); }},
    {.method = "DELETE",
     .path = "/api/delete",
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).remove(*exchange); }},
    {.method = "POST",
     .path = "/api/copy",
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).copy(*exchange); }},
    {.method = "POST", .path = "/api/create", .tell = refuse_change},
    {.method = "POST", .path = "/api/push", .tell = refuse_change},
    {.method = "GET", .path = "/api/blobs/", .tell = refuse_change},
    {.method = "POST", .path = "/api/blobs/", .tell = refuse_change},
};

}  // namespace

const Api kApi{.name = "ollama", .routes = kRoutes, .error_form = tell_error};

}  // namespace candor::serve::ollama
