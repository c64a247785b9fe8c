// POST /v1/responses, from JSON to an engine request.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/core/request_terms.h"
#include "serve/responses/requests.h"

namespace candor::serve::responses {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// What a server that stores nothing cannot do.
void refuse_state(Fields& fields) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"}) {
    if (fields.raw(name) == nullptr) continue;
    fields.refuse(name, fmt::format("{} names something that is stored, and nothing is stored here: send the whole "
                                    "conversation as input",
                                    name));
  }
  if (fields.boolean("background").value_or(false)) {
    fields.refuse("background",
                  "background is true, expected false: nothing is stored here that could be fetched later");
  }
}

Json text_or_null(Fields& fields, const char* name) {
  const auto text = fields.text(name);
  return text ? Json(*text) : Json();
}

// True if the list has the word.
struct Include {
  bool logprobs = false;
  bool sealed_reasoning = false;
};

Include read_include(Fields& fields, std::vector<std::string>& warnings) {
  static constexpr std::string_view kIdle[] = {
      "web_search_call.results",       "web_search_call.action.sources",        "file_search_call.results",
      "code_interpreter_call.outputs", "computer_call_output.output.image_url", "message.input_image.image_url"};
  Include include;
  const Json* list = fields.array("include");
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Json& one = (*list)[i];
    const std::string word = one.is_string() ? one.get<std::string>() : "";
    if (word == "message.output_text.logprobs") {
      include.logprobs = true;
    } else if (word == "reasoning.encrypted_content") {
      include.sealed_reasoning = true;
    } else if (std::ranges::find(kIdle, word) != std::end(kIdle)) {
      warnings.push_back(fmt::format("include[{}] has no effect: there is nothing here of {}", i, word));
    } else {
      fields.refuse("include", fmt::format("include[{}] is {}, expected message.output_text.logprobs or "
                                           "reasoning.encrypted_content",
                                           i, shown(one)));
    }
  }
  return include;
}

void read_metadata(Fields& fields, Json& echo) {
  constexpr size_t kMostPairs = 16;
  constexpr size_t kMostKeyBytes = 64 * 4;  // characters may take four
  constexpr size_t kMostValueBytes = 512 * 4;
  const Json* metadata = fields.object("metadata");
  echo["metadata"] = metadata == nullptr ? Json::object() : *metadata;
  if (metadata == nullptr) return;
  if (metadata->size() > kMostPairs) {
    return fields.refuse("metadata",
                         fmt::format("metadata has {} members, expected at most {}", metadata->size(), kMostPairs));
  }
  for (const auto& [key, value] : metadata->items()) {
    const bool fits = key.size() <= kMostKeyBytes && value.is_string() &&
                      value.get_ref<const std::string&>().size() <= kMostValueBytes;
    if (fits) continue;
    return fields.refuse("metadata",
                         fmt::format("metadata[{}] is {}, expected strings, keys of at most 64 characters and "
                                     "values of at most 512",
                                     shown(Json(key)), shown(value)));
  }
}

// The words of {"type": "json_schema", "name", "schema", "strict"}, flat.
std::optional<ConstraintSpec> read_schema(Fields& format, Json& echo) {
  const std::string name = format.text("name").value_or("");
  const auto description = format.text("description");
  const auto strict = format.boolean("strict");
  const Json* schema = format.object("schema");
  if (schema == nullptr) {
    format.refuse("schema", format.path_of("schema") + " is missing, expected an object");
    return std::nullopt;
  }
  echo = {{"type", "json_schema"},
          {"name", name},
          {"description", description ? Json(*description) : Json()},
          {"schema", *schema},
          {"strict", strict.value_or(false)}};
  return ConstraintSpec{.kind = GrammarKind::kJsonSchema, .source = to_text(*schema)};
}

std::optional<ConstraintSpec> read_format(Fields& format, Json& echo) {
  const std::string type = format.text("type").value_or("");
  if (type == "text") return std::nullopt;
  if (type == "json_schema") return read_schema(format, echo);
  if (type == "json_object") {
    echo = {{"type", "json_object"}};
    return ConstraintSpec{.kind = GrammarKind::kJsonObject};
  }
  format.refuse("type", fmt::format("{} is {}, expected text, json_object or json_schema", format.path_of("type"),
                                    type.empty() ? "missing" : shown(Json(type))));
  return std::nullopt;
}

std::optional<ConstraintSpec> read_text(Fields& fields, Json& echo, std::vector<std::string>& warnings) {
  Json used = {{"type", "text"}};
  std::optional<ConstraintSpec> spec;
  if (const Json* text = fields.object("text")) {
    Fields inner(*text, "text");
    if (inner.text("verbosity")) warnings.push_back("text.verbosity has no effect");
    if (const Json* format = inner.object("format")) {
      Fields one(*format, "text.format");
      spec = read_format(one, used);
      if (one.fault()) inner.refuse_with(*one.fault());
    }
    if (inner.fault()) fields.refuse_with(*inner.fault());
  }
  echo["text"] = {{"format", std::move(used)}};
  return spec;
}

// What the template is told: as the chat interface tells it.
std::string read_reasoning(Fields& fields, Json& echo, std::vector<std::string>& warnings) {
  static constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
  static constexpr std::string_view kSummaries[] = {"auto", "concise", "detailed"};
  const Json* given = fields.object("chat_template_kwargs");
  Json kwargs = given == nullptr ? Json::object() : *given;
  echo["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
  const Json* reasoning = fields.object("reasoning");
  if (reasoning != nullptr) {
    Fields inner(*reasoning, "reasoning");
    if (const auto effort = inner.text("effort")) {
      if (std::ranges::find(kEfforts, *effort) == std::end(kEfforts)) {
        inner.refuse("effort", fmt::format("reasoning.effort is {}, expected none, minimal, low, medium, high or xhigh",
                                           shown(Json(*effort))));
      }
      echo["reasoning"]["effort"] = *effort;
      kwargs.emplace("reasoning_effort", *effort);
      if (*effort == "none") kwargs.emplace("enable_thinking", false);
    }
    for (const char* name : {"summary", "generate_summary"}) {
      const auto summary = inner.text(name);
      if (!summary) continue;
      if (std::ranges::find(kSummaries, *summary) == std::end(kSummaries)) {
        inner.refuse(name, fmt::format("{} is {}, expected auto, concise or detailed", inner.path_of(name),
                                       shown(Json(*summary))));
      }
      warnings.push_back(inner.path_of(name) + " has no effect: reasoning is given as it is");
    }
    if (inner.fault()) fields.refuse_with(*inner.fault());
  }
  return kwargs.empty() ? std::string() : to_text(kwargs);
}

// auto: a longer input loses its oldest tokens, so that there is room for an answer.
void read_truncation(Fields& fields, const ApiLimits& limits, Request& request, Json& echo) {
  const std::string word = fields.text("truncation").value_or("disabled");
  if (word != "auto" && word != "disabled") {
    fields.refuse("truncation", fmt::format("truncation is {}, expected auto or disabled", shown(Json(word))));
  }
  echo["truncation"] = word;
  if (word != "auto") return;
  const int64_t half = std::max<int64_t>(1, limits.n_ctx / 2);
  const int64_t room = std::clamp<int64_t>(request.sampling.max_tokens.value_or(limits.n_ctx / 4), 1, half);
  request.max_prompt_tokens = std::max<int64_t>(1, limits.n_ctx - room);
}

void read_logprobs(Fields& fields, const Include& include, SamplingParams& sampling, Json& echo,
                   std::vector<std::string>& warnings) {
  const auto n_top = fields.integer("top_logprobs", 0, kMaxLogprobs);
  if (include.logprobs) sampling.logprobs = static_cast<int32_t>(n_top.value_or(0));
  if (!include.logprobs && n_top.value_or(0) > 0) {
    warnings.push_back("top_logprobs has no effect: include does not name message.output_text.logprobs");
  }
  echo["top_logprobs"] = include.logprobs ? n_top.value_or(0) : 0;
}

void read_idle(Fields& fields, Json& echo, std::vector<std::string>& warnings) {
  static constexpr std::string_view kTiers[] = {"auto", "default", "flex", "scale", "priority"};
  const auto n_calls = fields.integer("max_tool_calls", 1, kMost);
  if (n_calls) warnings.push_back("max_tool_calls has no effect: no tool runs at the server");
  if (fields.boolean("store").value_or(false)) warnings.push_back("store has no effect: nothing is stored here");
  const std::string tier = fields.text("service_tier").value_or("default");
  if (std::ranges::find(kTiers, tier) == std::end(kTiers)) {
    fields.refuse("service_tier", fmt::format("service_tier is {}, expected auto, default, flex, scale or priority",
                                              shown(Json(tier))));
  }
  if (const Json* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options");
    inner.boolean("include_obfuscation");
    if (inner.fault()) fields.refuse_with(*inner.fault());
  }
  echo["max_tool_calls"] = nullptr;
  echo["store"] = false;
  echo["background"] = false;
  echo["service_tier"] = "default";
  for (const char* name : {"safety_identifier", "prompt_cache_key", "user"}) echo[name] = text_or_null(fields, name);
  fields.accept({"client_metadata", "prompt_cache_retention", "prompt_cache_options"});
}

void echo_sampling(const SamplingParams& sampling, Json& echo) {
  echo["temperature"] = sampling.temperature;
  echo["top_p"] = sampling.top_p;
  echo["presence_penalty"] = sampling.presence_penalty;
  echo["frequency_penalty"] = sampling.frequency_penalty;
  echo["max_output_tokens"] = sampling.max_tokens ? Json(*sampling.max_tokens) : Json();
}

// Tools that are not offered are named where their client may look: in the response and in a header.
void tell_not_offered(const ToolSet& tools, ApiRequest& result, Json& echo) {
  if (tools.not_offered.empty()) return;
  const std::string names = fmt::format("{}", fmt::join(tools.not_offered, ", "));
  echo["metadata"]["tools_not_offered"] = names;
  result.warnings.push_back("tools of these types are not offered: " + names);
  add_warnings_header({result.warnings.back()}, result.headers);
}

void read_calls(Fields& fields, ChatPrompt& chat, ApiRequest& result, ResponseOptions& options) {
  ToolSet tools = read_tools(fields, result.warnings);
  const auto parallel = fields.boolean("parallel_tool_calls");
  result.wants_several_calls = parallel.value_or(false);
  result.parallel_tool_calls = parallel.value_or(true);
  read_tool_choice(fields, tools, chat, result);
  tell_not_offered(tools, result, options.echo);
  const Json* choice = fields.raw("tool_choice");
  options.echo["tools"] = std::move(tools.echoed);
  options.echo["tool_choice"] = choice == nullptr ? Json("auto") : *choice;
  options.echo["parallel_tool_calls"] = result.parallel_tool_calls;
  options.tools = std::move(tools.offered);
}

void read_response(Fields& fields, const RequestTerms& terms, ApiRequest& result, ResponseOptions& options) {
  const ApiLimits& limits = terms.limits();
  Json& echo = options.echo;
  result.names = {.prompt = "input", .constraint = "text.format"};
  check_model(fields, limits, result.model);
  result.stream = fields.boolean("stream").value_or(false);
  refuse_state(fields);
  echo["previous_response_id"] = nullptr;
  echo["instructions"] = text_or_null(fields, "instructions");
  Request request;
  request.sampling = read_sampling(fields, std::nullopt, 1);
  if (const auto most = fields.integer("max_output_tokens", 1, kMost)) request.sampling.max_tokens = most;
  const Include include = read_include(fields, result.warnings);
  options.seals_reasoning = include.sealed_reasoning;
  read_logprobs(fields, include, request.sampling, echo, result.warnings);
  read_truncation(fields, limits, request, echo);
  request.constraint = read_text(fields, echo, result.warnings);
  request.scheduling = read_scheduling(fields);
  request.receipt = read_receipt(fields);
  read_metadata(fields, echo);
  ChatPrompt chat;
  chat.kwargs_json = read_reasoning(fields, echo, result.warnings);
  read_calls(fields, chat, result, options);
  read_idle(fields, echo, result.warnings);
  echo_sampling(request.sampling, echo);
  chat.messages = read_input(fields, terms, result.warnings);
  request.prompt = std::move(chat);
  if (result.forced_call && request.constraint) {
    fields.refuse("tool_choice", "tool_choice asks for a call, and text.format for something else");
  } else if (result.forced_call) {
    request.constraint = result.forced_call;
    result.names.constraint = "tools";
  }
  if (request.constraint) request.constraint->is_strict = limits.is_strict;
  result.requests.push_back(std::move(request));
}

}  // namespace

Result<ApiRequest> parse_response(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  ApiRequest result;
  auto options = std::make_shared<ResponseOptions>();
  read_response(fields, terms, result, *options);
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.make_reply = [options](const Engine& engine, ReplyHead head, size_t) {
    return make_response_reply(engine, std::move(head), *options);
  };
  return result;
}

}  // namespace candor::serve::responses
