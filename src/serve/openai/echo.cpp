// Prompts that are shown beside what follows them.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/openai/api_request.h"

namespace candor::openai {

Result<void> read_echo(const Engine& engine, ApiRequest& request) {
  if (!request.echo) return {};
  for (Request& one : request.requests) {
    auto tokens = engine.tokenize(one.prompt);
    if (!tokens) return with_api_field(tokens.error(), request.names);
    EchoedPrompt echoed{.tokens = std::move(*tokens)};
    if (const auto* text = std::get_if<TextPrompt>(&one.prompt)) {
      echoed.text = text->text;
    } else {
      auto detokenized = engine.detokenize(echoed.tokens);
      if (!detokenized) return with_api_field(detokenized.error(), request.names);
      echoed.text = std::move(*detokenized);
    }
    one.prompt = echoed.tokens;
    request.echoed.push_back(std::move(echoed));
  }
  return {};
}

void read_prompt_logprobs(Fields& fields, ApiRequest& request, SamplingParams& sampling) {
  const auto wanted = fields.integer("prompt_logprobs", 0, kMaxLogprobs);
  if (!wanted) return;
  if (request.stream) {
    return fields.refuse("prompt_logprobs", "prompt_logprobs comes with a whole reply, expected stream: false");
  }
  request.wants_prompt_logprobs = true;
  sampling.prompt_logprobs = std::max(sampling.prompt_logprobs, static_cast<int32_t>(*wanted));
}

}  // namespace candor::openai
