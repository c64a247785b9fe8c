#include "serve/receipts/api.h"

#include <memory>

#include "serve/core/generations.h"
#include "serve/http/exchange.h"
#include "serve/receipts/requests.h"

namespace candor::serve::receipts {
namespace {

void verify(const Core& core, const std::shared_ptr<http::Exchange>& exchange) {
  core.generations.answer(exchange, parse_verification(exchange->request().body, core.terms), {});
}

constexpr Route kRoutes[] = {
    {.method = "POST", .path = "/v1/receipts/verify", .generates = true, .handle = verify},
};

}  // namespace

const Api kApi{.name = "receipts", .routes = kRoutes};

}  // namespace candor::serve::receipts
