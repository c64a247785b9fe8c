// POST /v1/completions, from JSON to engine requests.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

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

constexpr int64_t kDefaultMaxTokens = 16;

// n_probs: as llama.cpp's clients say it.
int32_t read_completion_logprobs(Fields& fields) {
  const auto n_probs = fields.integer("n_probs", 0, kMaxLogprobs);
  const int64_t fallback = n_probs && *n_probs > 0 ? *n_probs : -1;
  return static_cast<int32_t>(fields.integer("logprobs", 0, kMaxLogprobs).value_or(fallback));
}

}  // namespace

Result<ApiRequest> parse_completion(const Json& body, const RequestTerms& terms) {
  const ApiLimits& limits = terms.limits();
  Fields fields(body);
  ApiRequest result;
  ReplyOptions reply;
  read_common(fields, limits, result, reply);
  const bool echo = fields.boolean("echo").value_or(false);
  Request base;
  base.sampling = read_sampling(fields, kDefaultMaxTokens, echo ? 0 : 1);
  base.sampling.logprobs = read_completion_logprobs(fields);
  const bool makes_no_text = base.sampling.max_tokens == 0;
  if (echo && (base.sampling.logprobs >= 0 || makes_no_text)) {
    base.sampling.prompt_logprobs = std::max(0, base.sampling.logprobs);
  }
  read_prompt_logprobs(fields, result, base.sampling, reply);
  base.n = result.n_choices;
  base.scheduling = read_scheduling(fields);
  base.receipt = read_receipt(fields);
  base.adapters = read_adapters(fields, limits);
  read_truncation(fields, limits, base);
  if (echo && base.max_prompt_tokens) {
    fields.refuse("truncate_prompt_tokens", "truncate_prompt_tokens and echo cannot be asked for together");
  }
  base.constraint = read_constraint(fields, result.names.constraint);
  if (base.constraint) base.constraint->is_strict = limits.is_strict;
  const auto best_of = fields.integer("best_of", 1, limits.max_choices);
  read_beams(fields, best_of, base, result.warnings);
  if (best_of && *best_of != result.n_choices && !base.beams) {
    fields.refuse("best_of",
                  fmt::format("best_of is {}, and only n ({}) answers are drawn", *best_of, result.n_choices));
  }
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty()) {
    fields.refuse("suffix", "suffix is not offered: the model continues texts, it does not fill them in");
  }
  for (Prompt& prompt : read_prompts(fields, "prompt")) {
    base.prompt = std::move(prompt);
    result.requests.push_back(base);
  }
  settle_unknown(fields, limits, result.warnings);
  if (fields.fault()) return *fields.fault();
  if (echo) {
    auto echoed = read_echo(terms.engine(), result);
    if (!echoed) return echoed.error();
    reply.echoed = std::move(*echoed);
  }
  result.make_reply = [reply](const Engine& engine, ReplyHead head, size_t n_choices) {
    return make_completion_reply(engine, std::move(head), reply, n_choices);
  };
  return result;
}

const Endpoint kCompletion{.parse = parse_completion, .id_prefix = "cmpl-"};

}  // namespace candor::serve::openai
