// POST /completion, from JSON to engine requests, and what /infill shares with it.

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/core/request_terms.h"
#include "serve/llama_cpp/completion_reply.h"
#include "serve/llama_cpp/requests.h"

namespace candor::serve::llama_cpp {
namespace {

constexpr double kMostMs = 1e9;

// Numbers that neither a client nor its preset gives are llama.cpp's, not OpenAI's.
void take_defaults(const Fields& fields, SamplingParams& sampling) {
  const SamplingParams defaults = default_sampling();
  const bool has_preset = fields.has("preset");
  if (!has_preset && !fields.has("temperature")) sampling.temperature = defaults.temperature;
  if (!has_preset && !fields.has("top_k")) sampling.top_k = defaults.top_k;
  if (!has_preset && !fields.has("top_p")) sampling.top_p = defaults.top_p;
  if (!fields.has("min_p")) sampling.min_p = defaults.min_p;
  if (!fields.has("repeat_last_n")) sampling.repeat_last_n = defaults.repeat_last_n;
}

// -1: until the end; 0: the prompt is read, and that is all. A negative seed is none.
SamplingParams read_chances(Fields& fields, ApiRequest& result, ReplyOptions& reply) {
  SamplingParams sampling = read_sampling(fields, -1, -1);
  if (sampling.max_tokens == -1) sampling.max_tokens.reset();
  reply.is_warm_up = sampling.max_tokens == 0;
  if (reply.is_warm_up) sampling.max_tokens = 1;
  if (const Json* seed = fields.raw("seed"); seed != nullptr && seed->is_number_integer() && *seed < 0)
    sampling.seed.reset();
  take_defaults(fields, sampling);
  read_samplers(fields, sampling, result.warnings);
  const int64_t n_probs = fields.integer("n_probs", 0, kMaxLogprobs).value_or(0);
  if (n_probs > 0) sampling.logprobs = static_cast<int32_t>(n_probs);
  return sampling;
}

void read_reply_fields(Fields& fields, ReplyOptions& reply) {
  const Json* names = fields.array("response_fields");
  if (names == nullptr) return;
  for (const Json& name : *names) {
    if (!name.is_string())
      return fields.refuse("response_fields", fmt::format("response_fields holds {}, expected strings", shown(name)));
    reply.fields.push_back(name.get<std::string>());
  }
}

// What llama.cpp has, and what would change the text if it were dropped.
void refuse_others(Fields& fields) {
  if (const auto mirostat = fields.integer("mirostat", 0, 2); mirostat && *mirostat != 0)
    fields.refuse("mirostat", "mirostat is not offered, expected 0");
}

void warn_of_idle(Fields& fields, ApiRequest& result) {
  const auto warn = [&](const char* name, std::string_view why) {
    result.warnings.push_back(fmt::format("{} has no effect: {}", name, why));
  };
  if (fields.integer("id_slot", -1, kMostSlot).value_or(-1) >= 0) warn("id_slot", "requests have no fixed places here");
  if (!fields.boolean("cache_prompt").value_or(true))
    warn("cache_prompt", "what was read before is used again, and changes no bit of an answer");
  if (fields.integer("n_keep", -1, std::numeric_limits<int32_t>::max()).value_or(0) != 0)
    warn("n_keep", "a full context ends the text");
  if (fields.boolean("timings_per_token").value_or(false)) warn("timings_per_token", "timings come with the end");
  fields.accept({"n_discard", "min_keep", "mirostat_tau", "mirostat_eta", "user"});
}

std::string shown_prompt(const Engine& engine, const Prompt& prompt) {
  if (const auto* text = std::get_if<TextPrompt>(&prompt)) return text->text;
  const auto text = engine.detokenize(std::get<TokenPrompt>(prompt));
  return text ? *text : std::string();
}

}  // namespace

std::optional<Json> without_empty_grammar(const Json& body) {
  const auto grammar = body.find("grammar");
  if (grammar == body.end() || *grammar != "") return std::nullopt;
  Json rest = body;
  rest.erase("grammar");
  return rest;
}

Request read_generation(Fields& fields, const ApiLimits& limits, ApiRequest& result, ReplyOptions& reply) {
  check_model(fields, limits, result.model);
  result.stream = fields.boolean("stream").value_or(false);
  const int64_t n = fields.integer("n", 1, limits.max_choices).value_or(1);
  result.n_choices = static_cast<int32_t>(fields.integer("n_cmpl", 1, limits.max_choices).value_or(n));
  Request base;
  base.n = result.n_choices;
  base.sampling = read_chances(fields, result, reply);
  base.scheduling = read_scheduling(fields);
  base.receipt = read_receipt(fields);
  base.adapters = read_adapters(fields, limits);
  base.scheduling.prompt_deadline_ms = fields.number("t_max_prompt_ms", -1, kMostMs).value_or(0);
  if (base.scheduling.prompt_deadline_ms < 0) base.scheduling.prompt_deadline_ms = 0;
  reply.max_predict_ms = fields.number("t_max_predict_ms", -1, kMostMs).value_or(0);
  read_truncation(fields, limits, base);
  base.constraint = read_constraint(fields, result.names.constraint);
  if (base.constraint) {
    base.constraint->is_strict = limits.is_strict;
    reply.constraint = base.constraint->source;
  }
  reply.n_indent = fields.integer("n_indent", 0, std::numeric_limits<int32_t>::max()).value_or(0);
  reply.return_tokens = fields.boolean("return_tokens").value_or(false);
  reply.return_progress = fields.boolean("return_progress").value_or(false);
  read_reply_fields(fields, reply);
  refuse_others(fields);
  warn_of_idle(fields, result);
  if (reply.is_warm_up) {
    base.pooling = Pooling::kLast;
    base.constraint.reset();
    base.n = result.n_choices = 1;
  }
  return base;
}

Result<ApiRequest> finish_generation(const RequestTerms& terms, Request base, std::vector<Prompt> prompts,
                                     ApiRequest result, ReplyOptions reply) {
  for (Prompt& prompt : prompts) {
    reply.prompts.push_back(shown_prompt(terms.engine(), prompt));
    base.prompt = std::move(prompt);
    result.requests.push_back(base);
  }
  reply.sampling = base.sampling;
  reply.as_list = result.requests.size() * static_cast<size_t>(result.n_choices) > 1;
  result.make_reply = [reply](const Engine& engine, ReplyHead head, size_t n_choices) {
    return make_completion_reply(engine, std::move(head), reply, n_choices);
  };
  return result;
}

Result<ApiRequest> parse_completion(const Json& body, const RequestTerms& terms) {
  const std::optional<Json> rest = without_empty_grammar(body);
  Fields fields(rest ? *rest : body);
  ApiRequest result;
  ReplyOptions reply;
  Request base = read_generation(fields, terms.limits(), result, reply);
  std::vector<Prompt> prompts = read_mixed_prompts(fields, terms);
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  return finish_generation(terms, std::move(base), std::move(prompts), std::move(result), std::move(reply));
}

}  // namespace candor::serve::llama_cpp
