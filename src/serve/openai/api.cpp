#include "serve/openai/api.h"

#include <memory>
#include <nlohmann/json.hpp>  // IWYU pragma: keep: parse_body() gives one

#include "serve/core/early_stream.h"
#include "serve/core/json_body.h"
#include "serve/core/stream_format.h"
#include "serve/http/exchange.h"
#include "serve/openai/adapter_routes.h"
#include "serve/openai/info_routes.h"
#include "serve/openai/requests.h"
#include "serve/openai/text_routes.h"

namespace candor::serve::openai {
namespace {

using Shared = std::shared_ptr<http::Exchange>;

void embed(const Core& core, const Shared& exchange) {
  const auto body = parse_body(exchange->request().body);
  if (!body) return core.generations.embed(exchange, body.error());
  core.generations.embed(exchange, parse_embedding(*body, core.limits()));
}

void save_cache(const Core& core, http::Exchange& exchange) {
  const auto n_blocks = core.engine.save_cache();
  if (!n_blocks) return answer(exchange, n_blocks.error());
  answer(exchange, Json{{"object", "cache.saving"}, {"blocks", *n_blocks}});
}

constexpr Route kRoutes[] = {
    {.method = "GET",
     .path = "/health",
     .needs_key = false,
     .is_quick = true,
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).health(*exchange); }},
    {.method = "GET",
     .path = "/ready",
     .is_quick = true,
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).ready(*exchange); }},
    {.method = "GET",
     .path = "/metrics",
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).metrics(*exchange); }},
    {.method = "GET",
     .path = "/v1/models",
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).models(*exchange); }},
    {.method = "GET",
     .path = "/v1/models/",
     .tell = [](const ServerCore& core, const Shared& exchange) { InfoRoutes(core).model(*exchange); }},
    {.method = "POST",
     .path = "/v1/chat/completions",
     .generates = true,
     .handle = [](const Core& core, const Shared& exchange) { core.generations.generate(exchange, kChat); },
     .loading = {.format = StreamFormat::kData, .words = loading_comment}},
    {.method = "POST",
     .path = "/v1/completions",
     .generates = true,
     .handle = [](const Core& core, const Shared& exchange) { core.generations.generate(exchange, kCompletion); },
     .loading = {.format = StreamFormat::kData, .words = loading_comment}},
    {.method = "POST",
     .path = "/v1/embeddings",
     .generates = true,
     .handle = [](const Core& core, const Shared& exchange) { embed(core, exchange); }},
    {.method = "POST",
     .path = "/tokenize",
     .handle = [](const Core& core, const Shared& exchange) { TextRoutes(core).tokenize(*exchange); }},
    {.method = "POST",
     .path = "/detokenize",
     .handle = [](const Core& core, const Shared& exchange) { TextRoutes(core).detokenize(*exchange); }},
    {.method = "POST",
     .path = "/apply-template",
     .handle = [](const Core& core, const Shared& exchange) { TextRoutes(core).apply_template(*exchange); }},
    {.method = "GET",
     .path = "/tokenizer_info",
     .handle = [](const Core& core, const Shared& exchange) { TextRoutes(core).tokenizer_info(*exchange); }},
    {.method = "POST",
     .path = "/cache/save",
     .handle = [](const Core& core, const Shared& exchange) { save_cache(core, *exchange); }},
    {.method = "POST",
     .path = "/v1/load_lora_adapter",
     .handle = [](const Core& core, const Shared& exchange) { AdapterRoutes(core).load(*exchange); }},
    {.method = "POST",
     .path = "/v1/unload_lora_adapter",
     .handle = [](const Core& core, const Shared& exchange) { AdapterRoutes(core).unload(*exchange); }},
    {.method = "GET", .path = "/v1/stream", .is_socket = true},
};

}  // namespace

const Api kApi{.name = "openai", .routes = kRoutes};

}  // namespace candor::serve::openai
