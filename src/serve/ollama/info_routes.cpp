#include "serve/ollama/info_routes.h"

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "candor/version.h"
#include "serve/ollama/requests.h"

namespace candor::serve::ollama {
namespace {

constexpr const char* kInterfaceVersion = "0.12.6";  // of Ollama, whose interface this follows: clients compare it
constexpr const char* kNeverExpires = "2300-01-01T00:00:00Z";

// Clients show models by this name, and ask with it.
std::string tagged(const std::string& model) {
  return model.find(':') == std::string::npos ? model + ":latest" : model;
}

std::string size_text(int64_t n_parameters) {
  const auto n = static_cast<double>(n_parameters);
  constexpr double kBillion = 1e9, kMillion = 1e6, kThousand = 1e3;
  if (n >= kBillion) return fmt::format("{:.1f}B", n / kBillion);
  return n >= kMillion ? fmt::format("{:.1f}M", n / kMillion) : fmt::format("{:.1f}K", n / kThousand);
}

std::string time_text(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

void InfoRoutes::root(http::Exchange& exchange) const {
  exchange.respond({.content_type = "text/plain; charset=utf-8", .body = "Ollama is running"});
}

void InfoRoutes::version(http::Exchange& exchange) const {
  answer(exchange, Json{{"version", kInterfaceVersion}, {"candor", kVersion}});
}

void InfoRoutes::tags(http::Exchange& exchange) const {
  answer(exchange, Json{{"models", Json::array({model_json()})}});
}

void InfoRoutes::running(http::Exchange& exchange) const {
  Json model = model_json();
  model["size"] = core_.engine.info().weight_bytes + core_.engine.info().kv_bytes;
  model["expires_at"] = kNeverExpires;
  model["size_vram"] = 0;
  model["context_length"] = core_.engine.info().n_ctx;
  answer(exchange, Json{{"models", Json::array({std::move(model)})}});
}

void InfoRoutes::show(http::Exchange& exchange) const {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  read_model(fields, core_.limits());
  if (fields.fault()) return answer(exchange, *fields.fault());
  const ModelInfo& info = core_.engine.info();
  const std::string& family = info.family;
  answer(exchange, Json{{"modelfile", "FROM " + core_.limits().model},
                        {"parameters", fmt::format("num_ctx                        {}", info.n_ctx)},
                        {"template", ""},
                        {"details", details_json()},
                        {"model_info",
                         {{"general.architecture", family},
                          {"general.parameter_count", info.n_parameters},
                          {family + ".context_length", info.n_ctx},
                          {family + ".embedding_length", info.dim},
                          {family + ".block_count", info.n_layers},
                          {family + ".vocab_size", info.n_vocab}}},
                        {"capabilities", capabilities_json()},
                        {"modified_at", time_text(core_.created)}});
}

void InfoRoutes::pull(http::Exchange& exchange) const {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  const bool is_stream = fields.boolean("stream").value_or(true);
  const std::string name = read_model(fields, core_.limits());
  if (fields.fault() && fields.fault()->kind == ErrorKind::kNotFound) {
    return answer(exchange, fail(ErrorKind::kUnsupported,
                                 fmt::format("'{}' cannot be pulled by a client: run `candor pull` on the server's "
                                             "machine, and serve it; here is '{}'",
                                             clipped(name), core_.limits().model),
                                 "model"));
  }
  if (fields.fault()) return answer(exchange, *fields.fault());
  if (!is_stream) return answer(exchange, Json{{"status", "success"}});
  exchange.open_stream({.content_type = "application/x-ndjson"});
  exchange.write("{\"status\":\"pulling manifest\"}\n{\"status\":\"success\"}\n");
  exchange.finish();
}

Json InfoRoutes::details_json() const {
  constexpr double kBitsPerByte = 8;
  const ModelInfo& info = core_.engine.info();
  const double bits = static_cast<double>(info.file_bytes) * kBitsPerByte / static_cast<double>(info.n_parameters);
  return {{"parent_model", ""},
          {"format", info.format.starts_with("GGUF") ? "gguf" : "safetensors"},
          {"family", info.family},
          {"families", Json::array({info.family})},
          {"parameter_size", size_text(info.n_parameters)},
          {"quantization_level", info.n_parameters > 0 ? fmt::format("{:.1f} bits", bits) : "unknown"}};
}

Json InfoRoutes::capabilities_json() const {
  const ModelForm& form = core_.terms.model_form();
  Json list = Json::array({"completion"});
  if (form.shows_tools) list.push_back("tools");
  if (form.output.has_reasoning) list.push_back("thinking");
  return list;
}

Json InfoRoutes::model_json() const {
  const std::string name = tagged(core_.limits().model);
  return {{"name", name},
          {"model", name},
          {"modified_at", time_text(core_.created)},
          {"size", core_.engine.info().file_bytes},
          {"digest", fmt::format("{:064x}", core_.engine.info().hash)},
          {"details", details_json()},
          {"capabilities", capabilities_json()}};
}

}  // namespace candor::serve::ollama
