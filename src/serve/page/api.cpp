#include "serve/page/api.h"

#include <memory>

#include "serve/http/exchange.h"
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
     .tell = [](const ServerCore&, const Shared& exchange) { send(*exchange, PageFile::kHtml); }},
    {.method = "GET",
     .path = "/ui/app.js",
     .needs_key = false,
     .is_quick = true,
     .tell = [](const ServerCore&, const Shared& exchange) { send(*exchange, PageFile::kScript); }},
    {.method = "GET",
     .path = "/ui/app.css",
     .needs_key = false,
     .is_quick = true,
     .tell = [](const ServerCore&, const Shared& exchange) { send(*exchange, PageFile::kStyle); }},
    {.method = "GET",
     .path = "/ui/math.js",
     .needs_key = false,
     .is_quick = true,
     .tell = [](const ServerCore&, const Shared& exchange) { send(*exchange, PageFile::kMath); }},
    {.method = "GET",
     .path = "/ui/pdf.js",
     .needs_key = false,
     .is_quick = true,
     .tell = [](const ServerCore&, const Shared& exchange) { send(*exchange, PageFile::kPdf); }},
    {.method = "GET",
     .path = "/v1/ui/parameters",
     .handle = [](const Core& core, const Shared& exchange) { send_parameters(core, *exchange); }},
    {.method = "GET",
     .path = "/v1/ui/live",
     .tell = [](const ServerCore& server, const Shared& exchange) { send_live(server, *exchange); }},
};

}  // namespace

const Api kApi{.name = "page", .routes = kRoutes};

}  // namespace candor::serve::page
