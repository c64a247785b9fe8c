#include "serve/llama_cpp/api.h"

#include <memory>

#include "serve/core/early_stream.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/core/stream_format.h"
#include "serve/http/exchange.h"
#include "serve/llama_cpp/info_routes.h"
#include "serve/llama_cpp/requests.h"

namespace candor::serve::llama_cpp {
namespace {

using Shared = std::shared_ptr<http::Exchange>;

const Endpoint kCompletion{
    .parse = parse_completion, .format = StreamFormat::kBareData, .id_prefix = "cmpl-"};
const Endpoint kInfill{.parse = parse_infill, .format = StreamFormat::kBareData, .id_prefix = "infill-"};

void complete(const Core& core, const Shared& exchange) {
  core.generations.generate(exchange, kCompletion);
}

void fill_in(const Core& core, const Shared& exchange) {
  core.generations.generate(exchange, kInfill);
}

constexpr LoadingForm kLoading{.format = StreamFormat::kBareData, .words = loading_comment};

constexpr Route kRoutes[] = {
    {.method = "POST", .path = "/completion", .generates = true, .handle = complete, .loading = kLoading},
    {.method = "POST", .path = "/completions", .generates = true, .handle = complete, .loading = kLoading},
    {.method = "POST", .path = "/infill", .generates = true, .handle = fill_in, .loading = kLoading},
    {.method = "GET",
     .path = "/props",
     .handle = [](const Core& core, const Shared& exchange) { InfoRoutes(core).props(*exchange); }},
    {.method = "GET",
     .path = "/slots",
     .handle = [](const Core& core, const Shared& exchange) { InfoRoutes(core).slots(*exchange); }},
    {.method = "POST",
     .path = "/slots/",
     .handle = [](const Core& core, const Shared& exchange) { InfoRoutes(core).slot_action(*exchange); }},
    {.method = "GET",
     .path = "/lora-adapters",
     .handle = [](const Core& core, const Shared& exchange) { InfoRoutes(core).lora_adapters(*exchange); }},
    {.method = "POST",
     .path = "/lora-adapters",
     .handle = [](const Core& core, const Shared& exchange) { InfoRoutes(core).set_lora_adapters(*exchange); }},
};

}  // namespace

const Api kApi{.name = "llama.cpp", .routes = kRoutes};

}  // namespace candor::serve::llama_cpp
