// Prompts that are shown beside what follows them.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {

Result<std::vector<EchoedPrompt>> read_echo(const Engine& engine, ApiRequest& request) {
  std::vector<EchoedPrompt> all;
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
    all.push_back(std::move(echoed));
  }
  return all;
}

void read_prompt_logprobs(Fields& fields, const ApiRequest& request, SamplingParams& sampling, ReplyOptions& reply) {
  const auto wanted = fields.integer("prompt_logprobs", 0, kMaxLogprobs);
  if (!wanted) return;
  if (request.stream) {
    return fields.refuse("prompt_logprobs", "prompt_logprobs comes with a whole reply, expected stream: false");
  }
  reply.wants_prompt_logprobs = true;
  sampling.prompt_logprobs = std::max(sampling.prompt_logprobs, static_cast<int32_t>(*wanted));
}

}  // namespace candor::serve::openai
