// POST /v1/chat/completions, from JSON to an engine request.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/generations.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/core/request_terms.h"
#include "serve/openai/reply_parts.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {
namespace {

int32_t read_chat_logprobs(Fields& fields) {
  const bool is_wanted = fields.boolean("logprobs").value_or(false);
  const auto n_probs = fields.integer("n_probs", 0, kMaxLogprobs);
  const auto n_top = fields.integer("top_logprobs", 0, kMaxLogprobs);
  if (n_top && *n_top > 0 && !is_wanted) fields.refuse("top_logprobs", "top_logprobs needs logprobs: true");
  if (!is_wanted && n_probs && *n_probs > 0) return static_cast<int32_t>(*n_probs);
  return is_wanted ? static_cast<int32_t>(n_top.value_or(n_probs.value_or(0))) : -1;
}

void read_chat(Fields& fields, const RequestTerms& terms, ApiRequest& result, ReplyOptions& reply) {
  const ApiLimits& limits = terms.limits();
  result.names.prompt = "messages";
  read_common(fields, limits, result, reply);
  Request request;
  request.sampling = read_sampling(fields, std::nullopt, 1);
  request.sampling.logprobs = read_chat_logprobs(fields);
  read_prompt_logprobs(fields, result, request.sampling, reply);
  request.n = result.n_choices;
  read_beams(fields, std::nullopt, request, result.warnings);
  request.scheduling = read_scheduling(fields);
  request.receipt = read_receipt(fields);
  request.adapters = read_adapters(fields, limits);
  read_truncation(fields, limits, request);
  request.constraint = read_constraint(fields, result.names.constraint);
  if (auto chat = read_chat_prompt(fields, terms, result.warnings)) {
    read_tools(fields, *chat, result, reply);
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

void read_common(Fields& fields, const ApiLimits& limits, ApiRequest& request, ReplyOptions& reply) {
  check_model(fields, limits, request.model);
  request.n_choices = static_cast<int32_t>(fields.integer("n", 1, limits.max_choices).value_or(1));
  request.stream = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options");
    reply.include_usage = inner.boolean("include_usage").value_or(false);
    inner.accept({"include_obfuscation", "continuous_usage_stats"});
    if (inner.fault()) fields.refuse_with(*inner.fault());
  }
  reply.return_progress = fields.boolean("return_progress").value_or(false);
  if (const auto slot = fields.integer("id_slot", -1, 0); slot && *slot >= 0) {
    request.warnings.push_back("id_slot has no effect: requests have no fixed places here");
  }
  fields.accept({"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "metadata", "store",
                 "service_tier", "cache_prompt", "request_id"});
}

Result<ApiRequest> parse_chat(const Json& body, const RequestTerms& terms, std::initializer_list<const char*> also) {
  Fields fields(body);
  ApiRequest result;
  ReplyOptions reply;
  read_chat(fields, terms, result, reply);
  fields.accept(also);
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.make_reply = [reply](const Engine& engine, ReplyHead head, size_t n_choices) {
    return make_chat_reply(engine, std::move(head), reply, n_choices);
  };
  return result;
}

const Endpoint kChat{.parse = [](const Json& body, const RequestTerms& terms) { return parse_chat(body, terms); },
                     .id_prefix = "chatcmpl-"};

}  // namespace candor::serve::openai
