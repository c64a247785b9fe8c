#include "serve/openai/info_routes.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

namespace candor::serve::openai {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "%2F" and its like as the bytes that they stand for.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    decoded.push_back(is_code ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i]);
    i += is_code ? 2 : 0;
  }
  return decoded;
}

}  // namespace

void InfoRoutes::metrics(http::Exchange& exchange) const {
  const ServerFigures figures{core_.faults, core_.bytes, core_.places.n_tickets()};
  exchange.respond(
      {.content_type = "text/plain; version=0.0.4", .body = core_.metrics.text(core_.engine, figures, core_.read_limit)});
}

void InfoRoutes::health(http::Exchange& exchange) const {
  exchange.respond({.body = "{\"status\":\"ok\"}"});
}

void InfoRoutes::ready(http::Exchange& exchange) const {
  exchange.respond({.body = "{\"status\":\"ready\"}"});
}

Json InfoRoutes::model_json() const {
  const ModelInfo& info = core_.engine.info();
  std::tm utc{};
  const std::time_t created = core_.created;
  gmtime_r(&created, &utc);
  return {{"id", core_.limits().model},
          {"object", "model"},
          {"created", core_.created},
          {"type", "model"},
          {"display_name", core_.limits().model},
          {"created_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc)},
          {"owned_by", "candor"},
          {"max_model_len", info.n_ctx},
          {"meta",
           {{"n_vocab", info.n_vocab},
            {"n_ctx_train", info.n_ctx_train},
            {"n_embd", info.dim},
            {"n_params", info.n_parameters},
            {"size", info.file_bytes}}}};
}

void InfoRoutes::models(http::Exchange& exchange) const {
  const std::string& id = core_.limits().model;
  answer(exchange, Json{{"object", "list"},
                        {"data", Json::array({model_json()})},
                        {"has_more", false},
                        {"first_id", id},
                        {"last_id", id}});
}

void InfoRoutes::model(http::Exchange& exchange) const {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string name = percent_decoded(std::string_view(exchange.request().path).substr(kPrefix.size()));
  const auto& aliases = core_.limits().aliases;
  if (name == core_.limits().model || std::ranges::find(aliases, name) != aliases.end())
    return answer(exchange, model_json());
  answer(exchange, model_not_found(name));
}

}  // namespace candor::serve::openai
