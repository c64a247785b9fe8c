#include "serve/page/api.h"

#include <memory>

#include "serve/page/figures.h"
#include "serve/page/files.h"

namespace candor::serve::page {
namespace {

using Shared = std::shared_ptr<http::Exchange>;

constexpr Route kRoutes[] = {
    {.method = "GET",
     .path = "/",
     .needs_key = false,
     .is_quick = true,
     .accepts = "text/html",
     .handle = [](const Core&, const Shared& exchange) { send(*exchange, PageFile::kHtml); }},
    {.method = "GET",
     .path = "/ui/app.js",
     .needs_key = false,
     .is_quick = true,
     .handle = [](const Core&, const Shared& exchange) { send(*exchange, PageFile::kScript); }},
    {.method = "GET",
     .path = "/ui/app.css",
     .needs_key = false,
     .is_quick = true,
     .handle = [](const Core&, const Shared& exchange) { send(*exchange, PageFile::kStyle); }},
    {.method = "GET",
     .path = "/v1/ui/parameters",
     .handle = [](const Core& core, const Shared& exchange) { send_parameters(core, *exchange); }},
    {.method = "GET",
     .path = "/v1/ui/live",
     .handle = [](const Core& core, const Shared& exchange) { send_live(core, *exchange); }},
};

}  // namespace

const Api kApi{.name = "page", .routes = kRoutes};

}  // namespace candor::serve::page
