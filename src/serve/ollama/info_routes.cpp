#include "serve/ollama/info_routes.h"

#include <fmt/format.h>

#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "candor/info.h"
#include "candor/version.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/generations.h"
#include "serve/core/model_form.h"
#include "serve/ollama/requests.h"

namespace candor::serve::ollama {
namespace {

constexpr const char* kInterfaceVersion = "0.12.6";  // of Ollama, whose interface this follows: clients compare it
// The model's own template is none of Go's. Editors look for .Suffix, by which they know that a gap can be filled in.
constexpr const char* kInsertTemplate = "{{ .Prompt }}{{ if .Suffix }}{{ .Suffix }}{{ end }}";
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

Json details_json(const ModelInfo& info) {
  constexpr double kBitsPerByte = 8;
  const double bits = static_cast<double>(info.file_bytes) * kBitsPerByte / static_cast<double>(info.n_parameters);
  return {{"parent_model", ""},
          {"format", info.format.starts_with("GGUF") ? "gguf" : "safetensors"},
          {"family", info.family},
          {"families", Json::array({info.family})},
          {"parameter_size", size_text(info.n_parameters)},
          {"quantization_level", info.n_parameters > 0 ? fmt::format("{:.1f} bits", bits) : "unknown"}};
}

Json capabilities_json(const ModelInfo& info, bool shows_tools, bool has_reasoning) {
  Json list = Json::array({"completion"});
  if (!info.images.empty()) list.push_back("vision");
  if (info.fim.exist()) list.push_back("insert");
  if (shows_tools) list.push_back("tools");
  if (has_reasoning) list.push_back("thinking");
  return list;
}

// The name in that field ("name" as it was before "model"), or "" and a fault.
std::string read_name(Fields& fields, const char* field) {
  const std::string older = field == std::string_view("model") ? fields.text("name").value_or("") : "";
  const std::string name = fields.text(field).value_or(older);
  if (name.empty()) fields.refuse(field, fmt::format("{} is missing, expected the name of a model", field));
  return name;
}

void answer_done(http::Exchange& exchange, const Result<void>& done) {
  if (!done) return answer(exchange, done.error());
  exchange.respond({.body = ""});
}

constexpr std::string_view kOneModel =
    "the server has one model, given when it was started: it is neither changed, copied nor deleted by clients";

}  // namespace

void InfoRoutes::root(http::Exchange& exchange) const {
  exchange.respond({.content_type = "text/plain; charset=utf-8", .body = "Ollama is running"});
}

void InfoRoutes::version(http::Exchange& exchange) const {
  answer(exchange, Json{{"version", kInterfaceVersion}, {"candor", kVersion}});
}

void InfoRoutes::tags(http::Exchange& exchange) const {
  Json models = Json::array();
  for (const ModelStatus& model : core_.models.list()) models.push_back(model_json(model));
  answer(exchange, Json{{"models", std::move(models)}});
}

void InfoRoutes::running(http::Exchange& exchange) const {
  Json models = Json::array();
  for (const ModelStatus& status : core_.models.list()) {
    if (!status.is_loaded) continue;
    Json model = model_json(status);
    model["size"] = status.facts->info.weight_bytes + status.facts->info.kv_bytes;
    model["expires_at"] =
        status.expires_s ? time_text(unix_seconds() + static_cast<int64_t>(*status.expires_s)) : kNeverExpires;
    model["size_vram"] = 0;
    model["context_length"] = status.facts->info.n_ctx;
    models.push_back(std::move(model));
  }
  answer(exchange, Json{{"models", std::move(models)}});
}

void show(const Core& core, http::Exchange& exchange) {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  read_model(fields, core.limits());
  if (fields.fault()) return answer(exchange, *fields.fault());
  const ModelInfo& info = core.engine.info();
  const ModelForm& form = core.terms.model_form();
  const auto status = core.models.find(core.limits().model);
  const std::string& family = info.family;
  answer(exchange,
         Json{{"modelfile", "FROM " + core.limits().model},
              {"parameters", fmt::format("num_ctx                        {}", info.n_ctx)},
              {"template", info.fim.exist() ? kInsertTemplate : ""},
              {"details", details_json(info)},
              {"model_info",
               {{"general.architecture", family},
                {"general.parameter_count", info.n_parameters},
                {family + ".context_length", info.n_ctx},
                {family + ".embedding_length", info.dim},
                {family + ".block_count", info.n_layers},
                {family + ".vocab_size", info.n_vocab}}},
              {"capabilities", capabilities_json(info, form.shows_tools, form.output.has_reasoning)},
              {"modified_at", time_text(status && status->modified > 0 ? status->modified : unix_seconds())}});
}

void InfoRoutes::pull(http::Exchange& exchange) const {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  const bool is_stream = fields.boolean("stream").value_or(true);
  const std::string name = read_name(fields, "model");
  if (fields.fault()) return answer(exchange, *fields.fault());
  if (!core_.models.find(name)) {
    const auto known = core_.models.list();
    return answer(exchange, fail(ErrorKind::kUnsupported,
                                 fmt::format("'{}' cannot be pulled by a client: run `candor pull` on the server's "
                                             "machine, and serve it; here is '{}'",
                                             clipped(name), known.empty() ? std::string() : known.front().name),
                                 "model"));
  }
  if (!is_stream) return answer(exchange, Json{{"status", "success"}});
  exchange.open_stream({.content_type = "application/x-ndjson"});
  exchange.write("{\"status\":\"pulling manifest\"}\n{\"status\":\"success\"}\n");
  exchange.finish();
}

void InfoRoutes::refuse_change(http::Exchange& exchange) const {
  answer(exchange, Error{ErrorKind::kUnsupported,
                         core_.models.is_one() ? std::string(kOneModel)
                                               : "models are given when the server is started: clients neither make, "
                                                 "change nor send them"});
}

void InfoRoutes::copy(http::Exchange& exchange) const {
  if (core_.models.is_one()) return refuse_change(exchange);
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  const std::string source = read_name(fields, "source");
  const std::string destination = read_name(fields, "destination");
  if (fields.fault()) return answer(exchange, *fields.fault());
  answer_done(exchange, core_.models.add_name(source, std::string(untagged(destination))));
}

void InfoRoutes::remove(http::Exchange& exchange) const {
  if (core_.models.is_one()) return refuse_change(exchange);
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  const std::string name = read_name(fields, "model");
  if (fields.fault()) return answer(exchange, *fields.fault());
  answer_done(exchange, core_.models.remove_name(name));
}

// What only a model that was loaded once tells is unknown before.
Json InfoRoutes::model_json(const ModelStatus& model) const {
  const std::string name = tagged(model.name);
  Json json = {{"name", name},
               {"model", name},
               {"modified_at", time_text(model.modified > 0 ? model.modified : core_.created)},
               {"size", model.file_bytes},
               {"digest", fmt::format("{:064x}", model.facts ? model.facts->info.hash : 0)}};
  if (model.facts == nullptr) {
    json["details"] = {{"parent_model", ""},  {"format", ""},         {"family", ""},
                       {"families", nullptr}, {"parameter_size", ""}, {"quantization_level", ""}};
    return json;
  }
  json["details"] = details_json(model.facts->info);
  json["capabilities"] = capabilities_json(model.facts->info, model.facts->shows_tools, model.facts->has_reasoning);
  return json;
}

}  // namespace candor::serve::ollama
