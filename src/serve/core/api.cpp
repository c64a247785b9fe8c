#include "serve/core/api.h"

#include <string>

#include <nlohmann/json.hpp>

namespace candor::serve {

void answer(http::Exchange& exchange, const Json& json) {
  exchange.respond({.body = to_text(json)});
}

void answer(http::Exchange& exchange, const Error& error) {
  exchange.respond(http::error_response(error));
}

std::string loading_comment(const EarlyStream& /*stream*/) {
  return ": the model is being loaded\n\n";
}

}  // namespace candor::serve
