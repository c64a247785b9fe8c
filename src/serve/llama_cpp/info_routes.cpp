#include "serve/llama_cpp/info_routes.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "candor/info.h"
#include "candor/version.h"
#include "serve/core/json_body.h"
#include "serve/http/text.h"
#include "serve/llama_cpp/requests.h"

namespace candor::serve::llama_cpp {
namespace {

bool asks_for(std::string_view query, std::string_view name) {
  const std::string value = http::query_value(query, name).value_or("");
  return !value.empty() && value != "0" && value != "false";
}

}  // namespace

void InfoRoutes::props(http::Exchange& exchange) const {
  const ModelInfo& info = core_.engine.info();
  const auto written = [this](TokenId token) { return token < 0 ? Json() : Json(core_.engine.piece(token)); };
  const ReplyOptions defaults{.sampling = default_sampling()};
  Json params = settings_json(defaults, 0);
  params["seed"] = nullptr;  // one is made for each request
  answer(exchange, Json{{"default_generation_settings", {{"n_ctx", info.n_ctx}, {"params", std::move(params)}}},
                        {"total_slots", core_.limits().max_choices},
                        {"model_alias", core_.limits().model},
                        {"model_path", core_.limits().model},
                        {"modalities", {{"vision", !info.images.empty()}, {"audio", false}}},
                        {"chat_template", info.chat_template},
                        {"bos_token", written(info.bos)},
                        {"eos_token", written(info.eos)},
                        {"can_infill", info.fim.exist()},
                        {"build_info", std::string("candor ") + kVersion}});
}

void InfoRoutes::slots(http::Exchange& exchange) const {
  const EngineStats stats = core_.engine.stats();
  const bool has_room = core_.places.has_room(exchange.request().key);
  if (!has_room && asks_for(exchange.request().query, "fail_on_no_slot")) {
    return answer(exchange, Error{ErrorKind::kBusy, "no slot is free: every place is taken; try again"});
  }
  Json slots = Json::array();
  const auto add = [&](bool is_processing) {
    slots.push_back({{"id", slots.size()},
                     {"id_task", -1},
                     {"n_ctx", core_.engine.info().n_ctx},
                     {"speculative", !core_.engine.info().drafters.empty()},
                     {"is_processing", is_processing}});
  };
  for (int32_t i = 0; i < stats.n_running; ++i) add(true);
  if (has_room) add(false);
  answer(exchange, slots);
}

void InfoRoutes::slot_action(http::Exchange& exchange) const {
  answer(exchange, Error{ErrorKind::kUnsupported,
                         "slots cannot be saved, restored or erased: requests have no fixed places, and what was read "
                         "is found again by its tokens",
                         "action"});
}

void InfoRoutes::lora_adapters(http::Exchange& exchange) const {
  const std::vector<RequestAdapter> defaults = core_.adapters.defaults();
  Json list = Json::array();
  std::vector<AdapterInfo> adapters = core_.adapters.list();
  std::ranges::sort(adapters, {}, &AdapterInfo::number);
  for (const AdapterInfo& adapter : adapters) {
    const auto set = std::ranges::find(defaults, adapter.name, &RequestAdapter::name);
    list.push_back({{"id", adapter.number},
                    {"name", adapter.name},
                    {"path", adapter.path.filename().string()},
                    {"scale", set == defaults.end() ? 0.0 : set->scale},
                    {"rank", adapter.rank},
                    {"task_name", adapter.prompt.empty() ? "" : adapter.name},
                    {"prompt_prefix", adapter.prompt}});
  }
  answer(exchange, list);
}

void InfoRoutes::set_lora_adapters(http::Exchange& exchange) const {
  const auto list = parse_any_body(exchange.request().body);
  if (!list) return answer(exchange, list.error());
  if (auto set = core_.adapters.set_defaults(*list); !set) return answer(exchange, set.error());
  answer(exchange, Json{{"success", true}});
}

}  // namespace candor::serve::llama_cpp
