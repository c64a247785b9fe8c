// POST /v1/chat/completions, from JSON to an engine request.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "serve/openai/api_request.h"

namespace candor::openai {
namespace {

int32_t read_chat_logprobs(Fields& fields) {
  const bool is_wanted = fields.boolean("logprobs").value_or(false);
  const auto n_probs = fields.integer("n_probs", 0, kMaxLogprobs);
  const auto n_top = fields.integer("top_logprobs", 0, kMaxLogprobs);
  if (n_top && *n_top > 0 && !is_wanted) fields.refuse("top_logprobs", "top_logprobs needs logprobs: true");
  if (!is_wanted && n_probs && *n_probs > 0) return static_cast<int32_t>(*n_probs);
  return is_wanted ? static_cast<int32_t>(n_top.value_or(n_probs.value_or(0))) : -1;
}

void read_chat(Fields& fields, const ApiLimits& limits, ApiRequest& result) {
  result.is_chat = true;
  result.names.prompt = "messages";
  read_common(fields, limits, result);
  Request request;
  request.sampling = read_sampling(fields, std::nullopt, 1);
  request.sampling.logprobs = read_chat_logprobs(fields);
  read_prompt_logprobs(fields, result, request.sampling);
  request.n = result.n_choices;
  read_beams(fields, std::nullopt, request, result.warnings);
  request.scheduling = read_scheduling(fields);
  read_truncation(fields, limits, request);
  request.constraint = read_constraint(fields, result.names.constraint);
  if (auto chat = read_chat_prompt(fields)) {
    read_tools(fields, *chat, result);
    request.prompt = std::move(*chat);
  }
  if (result.forced_call && request.constraint) {
    fields.refuse("tool_choice", "tool_choice asks for a call, and response_format for something else");
  } else if (result.forced_call) {
    request.constraint = result.forced_call;
    result.names.constraint = "tools";
  }
  fields.accept({"verbosity", "prediction", "modalities", "audio", "web_search_options"});
  if (request.constraint) request.constraint->is_strict = limits.is_strict;
  result.requests.push_back(std::move(request));
}

}  // namespace

Result<ApiRequest> parse_chat(const Json& body, const ApiLimits& limits, std::initializer_list<const char*> also) {
  Fields fields(body);
  ApiRequest result;
  read_chat(fields, limits, result);
  fields.accept(also);
  settle_unknown(fields, limits, result.warnings);
  if (fields.fault()) return *fields.fault();
  return result;
}

}  // namespace candor::openai
