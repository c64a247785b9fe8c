#include "serve/openai/info_routes.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/metrics_page.h"
#include "serve/http/text.h"

namespace candor::serve::openai {
void InfoRoutes::metrics(http::Exchange& exchange) const {
  const ServerFigures figures{core_.faults, core_.bytes, core_.places.n_tickets()};
  const auto loaded = core_.models.loaded();
  std::vector<ModelFigures> models;
  models.reserve(loaded.size());
  for (const auto& [name, lease] : loaded)
    models.push_back({.engine = lease->engine, .name = name, .read_limit = lease->generations.read_limit()});
  exchange.respond({.content_type = "text/plain; version=0.0.4",
                    .body = core_.metrics.text(models, !core_.models.is_one(), figures)});
}

void InfoRoutes::health(http::Exchange& exchange) const {
  if (const auto health = core_.models.health(); !health) return answer(exchange, health.error());
  exchange.respond({.body = "{\"status\":\"ok\"}"});
}

void InfoRoutes::ready(http::Exchange& exchange) const {
  if (const auto health = core_.models.health(); !health) return answer(exchange, health.error());
  exchange.respond({.body = "{\"status\":\"ready\"}"});
}

// What only a model that was loaded once tells is left out before.
Json InfoRoutes::model_json(const ModelStatus& model) const {
  std::tm utc{};
  const std::time_t created = core_.created;
  gmtime_r(&created, &utc);
  Json json = {{"id", model.name},           {"object", "model"},
               {"created", core_.created},   {"type", "model"},
               {"display_name", model.name}, {"created_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc)},
               {"owned_by", "candor"}};
  if (!core_.models.is_one()) json["status"] = model.is_loaded ? "loaded" : model.is_loading ? "loading" : "unloaded";
  if (model.facts == nullptr) {
    json["meta"] = {{"size", model.file_bytes}};
    return json;
  }
  const ModelInfo& info = model.facts->info;
  json["max_model_len"] = info.n_ctx;
  json["meta"] = {{"n_vocab", info.n_vocab},
                  {"n_ctx_train", info.n_ctx_train},
                  {"n_embd", info.dim},
                  {"n_params", info.n_parameters},
                  {"size", info.file_bytes}};
  json["capabilities"] = Json::array();
  if (info.reading.writes) json["capabilities"].push_back("completion");
  if (!info.images.empty()) json["capabilities"].push_back("vision");
  return json;
}

// Adapters of the models that are loaded: models by themselves, by their names, or as "base:NAME" of several models.
void InfoRoutes::add_adapters(Json& data) const {
  for (const auto& [name, lease] : core_.models.loaded()) {
    for (const AdapterInfo& adapter : lease->adapters.list()) {
      data.push_back({{"id", core_.models.is_one() ? adapter.name : name + ":" + adapter.name},
                      {"object", "model"},
                      {"created", core_.created},
                      {"type", "model"},
                      {"display_name", adapter.name},
                      {"owned_by", "candor"},
                      {"parent", name},
                      {"root", adapter.path.filename().string()},
                      {"meta", {{"rank", adapter.rank}, {"size", adapter.memory_bytes}}}});
    }
  }
}

void InfoRoutes::models(http::Exchange& exchange) const {
  Json data = Json::array();
  for (const ModelStatus& model : core_.models.list()) data.push_back(model_json(model));
  add_adapters(data);
  const Json first = data.empty() ? Json() : data.front()["id"];
  const Json last = data.empty() ? Json() : data.back()["id"];
  answer(
      exchange,
      Json{{"object", "list"}, {"data", std::move(data)}, {"has_more", false}, {"first_id", first}, {"last_id", last}});
}

void InfoRoutes::model(http::Exchange& exchange) const {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string name = http::percent_decoded(std::string_view(exchange.request().path).substr(kPrefix.size()));
  Json adapters = Json::array();
  add_adapters(adapters);
  for (const Json& adapter : adapters) {
    if (adapter["id"] == name) return answer(exchange, adapter);
  }
  const auto model = core_.models.find(name);
  const bool is_it = model && (!core_.models.is_one() || model->name == name ||
                               std::ranges::find(model->names, name) != model->names.end());
  if (!is_it || name.empty()) return answer(exchange, model_not_found(name));
  answer(exchange, model_json(*model));
}

}  // namespace candor::serve::openai
