// POST /v1/messages, from JSON to an engine request.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/anthropic/requests.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/core/request_terms.h"

namespace candor::serve::anthropic {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Names that the object has and nobody asked for.
void warn_of_unknown(const Fields& inner, std::vector<std::string>& warnings) {
  constexpr size_t kMostNamed = 8;
  const std::vector<std::string> names = inner.unknown();
  for (size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    warnings.push_back(
        fmt::format("{} is not known here and has no effect", shown(Json(inner.path_of(names[i].c_str())))));
}

void read_stops(Fields& fields, SamplingParams& sampling) {
  const Json* stops = fields.array("stop_sequences");
  if (stops == nullptr) return;
  const auto refuse = [&fields](std::string words) { fields.refuse("stop_sequences", std::move(words)); };
  if (stops->size() > kMaxStopStrings)
    return refuse(fmt::format("stop_sequences has {} elements, expected at most {}", stops->size(), kMaxStopStrings));
  for (size_t i = 0; i < stops->size(); ++i) {
    const Json& stop = (*stops)[i];
    const size_t n_bytes = stop.is_string() ? stop.get_ref<const std::string&>().size() : 0;
    if (n_bytes == 0 || n_bytes > kMaxStopStringBytes) {
      return refuse(fmt::format("stop_sequences[{}] is {}, expected a string of 1 to {} bytes", i, shown(stop),
                                kMaxStopStringBytes));
    }
    sampling.stop.push_back(stop.get<std::string>());
  }
}

void read_thinking(Fields& fields, Json& arguments, std::vector<std::string>& warnings) {
  const Json* thinking = fields.object("thinking");
  if (thinking == nullptr) return;
  Fields inner(*thinking, "thinking");
  const std::string type = inner.text("type").value_or("");
  if (!inner.fault() && !is_one_of(type, {"enabled", "adaptive", "disabled"}))
    inner.refuse("type", fmt::format("thinking.type is {}, expected enabled, adaptive or disabled", shown(Json(type))));
  if (inner.integer("budget_tokens", 1, std::numeric_limits<int64_t>::max()))
    warnings.emplace_back("thinking.budget_tokens has no effect: max_tokens alone ends an answer");
  if (const auto display = inner.text("display"); display && *display != "summarized")
    warnings.emplace_back("thinking.display has no effect: thinking is shown as the model writes it");
  if (inner.fault()) return fields.refuse_with(*inner.fault());
  warn_of_unknown(inner, warnings);
  arguments.emplace("enable_thinking", type != "disabled");
}

// {"type": "json_schema", "schema": {...}}
void read_format(Fields& outer, const char* name, std::optional<ConstraintSpec>& constraint) {
  const Json* format = outer.object(name);
  if (format == nullptr) return;
  Fields inner(*format, outer.path_of(name));
  const std::string type = inner.text("type").value_or("");
  const Json* schema = inner.object("schema");
  if (!inner.fault() && type != "json_schema")
    inner.refuse("type", fmt::format("{} is {}, expected json_schema", inner.path_of("type"), shown(Json(type))));
  if (!inner.fault() && schema == nullptr)
    inner.refuse("schema", inner.path_of("schema") + " is missing, expected a JSON schema");
  if (inner.fault()) return outer.refuse_with(*inner.fault());
  constraint = ConstraintSpec{.kind = GrammarKind::kJsonSchema, .source = to_text(*schema)};
}

// How much effort, for templates that know the word, and what form the answer has.
std::optional<ConstraintSpec> read_output(Fields& fields, Json& arguments, ApiRequest& result) {
  std::optional<ConstraintSpec> constraint;
  result.names.constraint = "output_format";
  read_format(fields, "output_format", constraint);
  const Json* config = fields.object("output_config");
  if (config == nullptr) return constraint;
  Fields inner(*config, "output_config");
  if (inner.has("format")) result.names.constraint = "output_config.format";
  read_format(inner, "format", constraint);
  if (const auto effort = inner.text("effort")) {
    if (!is_one_of(*effort, {"low", "medium", "high", "xhigh", "max"}))
      inner.refuse("effort", fmt::format("output_config.effort is {}, expected low, medium, high, xhigh or max",
                                         shown(Json(*effort))));
    arguments.emplace("reasoning_effort", is_one_of(*effort, {"low", "medium"}) ? *effort : "high");
  }
  if (inner.fault()) {
    fields.refuse_with(*inner.fault());
  } else {
    warn_of_unknown(inner, result.warnings);
  }
  return constraint;
}

// What others run, or keep, for their clients.
void read_idle(Fields& fields, std::vector<std::string>& warnings) {
  fields.object("metadata");
  fields.object("cache_control");
  fields.text("service_tier");
  fields.accept({"inference_geo", "anthropic_version", "anthropic_beta", "betas"});
  if (const Json* context = fields.object("context_management"); context != nullptr && !context->empty())
    warnings.emplace_back("context_management has no effect: the conversation is read as it was sent");
  if (fields.has("container")) warnings.emplace_back("container has no effect: nothing runs here but the model");
  fields.raw("container");
  if (const Json* servers = fields.array("mcp_servers"); servers != nullptr && !servers->empty())
    warnings.push_back(fmt::format("mcp_servers has no effect: none of the {} is asked", servers->size()));
}

void read_message(Fields& fields, const RequestTerms& terms, ApiRequest& result) {
  result.names.prompt = "messages";
  check_model(fields, terms.limits(), result.model);
  result.stream = fields.boolean("stream").value_or(false);
  Request request;
  request.sampling = read_sampling(fields, std::nullopt, 1);
  read_stops(fields, request.sampling);
  request.scheduling = read_scheduling(fields);
  request.receipt = read_receipt(fields);
  const Json* given = fields.object("chat_template_kwargs");
  Json arguments = given == nullptr ? Json::object() : *given;
  read_thinking(fields, arguments, result.warnings);
  request.constraint = read_output(fields, arguments, result);
  if (auto chat = read_conversation(fields, terms.model_form(), terms.limits(), result.warnings)) {
    read_tools(fields, *chat, result);
    if (!arguments.empty()) chat->kwargs_json = to_text(arguments);
    request.prompt = std::move(*chat);
  }
  if (result.forced_call && request.constraint) {
    fields.refuse("tool_choice", "tool_choice asks for a call, and " + result.names.constraint + " for something else");
  } else if (result.forced_call) {
    request.constraint = result.forced_call;
    result.names.constraint = "tools";
  }
  if (request.constraint) request.constraint->is_strict = terms.limits().is_strict;
  read_idle(fields, result.warnings);
  settle_unknown(fields, terms.limits(), result.warnings);
  result.requests.push_back(std::move(request));
}

}  // namespace

Result<ApiRequest> parse_counted(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  ApiRequest result;
  read_message(fields, terms, result);
  if (fields.fault()) return *fields.fault();
  add_warnings_header(result.warnings, result.headers);
  return result;
}

Result<ApiRequest> parse_message(const Json& body, const RequestTerms& terms) {
  if (!Fields(body).has("max_tokens"))
    return fail(ErrorKind::kInvalidInput, "max_tokens is missing, expected a whole number of at least 1", "max_tokens");
  auto result = parse_counted(body, terms);
  if (!result) return result;
  const Request& request = result->requests.front();
  ReplyOptions options{.max_tokens = request.sampling.max_tokens.value_or(0)};
  if (result->stream) {
    const auto tokens = terms.engine().tokenize(request.prompt);
    if (!tokens) return with_api_field(tokens.error(), result->names);
    options.n_prompt_tokens = std::ssize(*tokens);
  }
  result->make_reply = [options](const Engine& engine, ReplyHead head, size_t /*n_choices*/) {
    return make_message_reply(engine, std::move(head), options);
  };
  return result;
}

}  // namespace candor::serve::anthropic
