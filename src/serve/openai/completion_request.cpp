// POST /v1/completions, from JSON to engine requests.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/openai/api_request.h"

namespace candor::openai {
namespace {

constexpr int64_t kDefaultMaxTokens = 16;

bool is_token_id(const Json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<TokenId>::max());
}

// One element of the list, or the prompt itself; the reason in `fault` where it is none.
std::optional<Prompt> read_one(const Json& value, std::string& fault) {
  if (value.is_string()) return TextPrompt{.text = value.get<std::string>()};
  if (!value.is_array()) {
    fault = fmt::format("{}, expected a string or token ids", shown(value));
    return std::nullopt;
  }
  TokenPrompt tokens;
  for (const Json& item : value) {
    if (!is_token_id(item)) {
      fault = fmt::format("{}, expected a token id", shown(item));
      return std::nullopt;
    }
    tokens.push_back(item.get<TokenId>());
  }
  return tokens;
}

// n_probs: as llama.cpp's clients say it.
int32_t read_completion_logprobs(Fields& fields) {
  const auto n_probs = fields.integer("n_probs", 0, kMaxLogprobs);
  const int64_t fallback = n_probs && *n_probs > 0 ? *n_probs : -1;
  return static_cast<int32_t>(fields.integer("logprobs", 0, kMaxLogprobs).value_or(fallback));
}

}  // namespace

std::vector<Prompt> read_prompts(Fields& fields, const char* name, size_t at_most) {
  const Json* value = fields.raw(name);
  std::vector<Prompt> prompts;
  if (value == nullptr) {
    fields.refuse(name, fmt::format("{} is missing, expected a string, token ids, or a list of either", name));
    return prompts;
  }
  const bool is_list = value->is_array() && !value->empty() && !value->front().is_number();
  const size_t n = is_list ? value->size() : 1;
  if (n > at_most) {
    fields.refuse(name, fmt::format("{} has {} elements, expected at most {}", name, n, at_most));
    return prompts;
  }
  for (size_t i = 0; i < n; ++i) {
    std::string fault;
    auto prompt = read_one(is_list ? (*value)[i] : *value, fault);
    if (!prompt) {
      fields.refuse(name, fmt::format("{} holds {}", name, fault));
      return prompts;
    }
    prompts.push_back(std::move(*prompt));
  }
  return prompts;
}

Result<ApiRequest> parse_completion(const Json& body, const ApiLimits& limits) {
  Fields fields(body);
  ApiRequest result;
  read_common(fields, limits, result);
  result.echo = fields.boolean("echo").value_or(false);
  Request base;
  base.sampling = read_sampling(fields, kDefaultMaxTokens, result.echo ? 0 : 1);
  base.sampling.logprobs = read_completion_logprobs(fields);
  const bool makes_no_text = base.sampling.max_tokens == 0;
  if (result.echo && (base.sampling.logprobs >= 0 || makes_no_text)) {
    base.sampling.prompt_logprobs = std::max(0, base.sampling.logprobs);
  }
  read_prompt_logprobs(fields, result, base.sampling);
  base.n = result.n_choices;
  base.scheduling = read_scheduling(fields);
  read_truncation(fields, limits, base);
  if (result.echo && base.max_prompt_tokens) {
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
  return result;
}

}  // namespace candor::openai
