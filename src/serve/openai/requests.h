#pragma once
// Parses and checks request bodies of OpenAI's API: each becomes an ApiRequest, the engine's requests with a maker of
// the reply.

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/model_form.h"
#include "serve/core/request_terms.h"

namespace candor::serve::openai {

// A prompt as `echo` shows it.
struct EchoedPrompt {
  std::string text{};
  std::vector<TokenId> tokens{};
};

// What only OpenAI's replies have.
struct ReplyOptions {
  bool include_usage = false;
  bool return_progress = false;        // of the prompt, as llama.cpp's clients ask for it
  bool as_functions = false;           // calls in the form that was before tools
  bool wants_prompt_logprobs = false;  // as vLLM shows them
  std::vector<EchoedPrompt> echoed{};  // one per prompt, or none
};

// also: further fields, which the route itself reads.
Result<ApiRequest> parse_chat(const Json& body, const RequestTerms& terms,
                              std::initializer_list<const char*> also = {});
// With what it echoes.
Result<ApiRequest> parse_completion(const Json& body, const RequestTerms& terms);
Result<EmbeddingRequest> parse_embedding(const Json& body, const ApiLimits& limits);

// Reads every prompt, once and for all: they are tokens then.
Result<std::vector<EchoedPrompt>> read_echo(const Engine& engine, ApiRequest& request);

// messages, tools and template arguments.
std::optional<ChatPrompt> read_chat_prompt(Fields& fields, const RequestTerms& terms,
                                           std::vector<std::string>& warnings);
// tools and tool_choice.
void read_tools(Fields& fields, ChatPrompt& chat, ApiRequest& result, ReplyOptions& reply);
// model, n, stream, stream_options, and what has no effect.
void read_common(Fields& fields, const ApiLimits& limits, ApiRequest& request, ReplyOptions& reply);
// prompt_logprobs, of the whole reply only.
void read_prompt_logprobs(Fields& fields, const ApiRequest& request, SamplingParams& sampling, ReplyOptions& reply);

}  // namespace candor::serve::openai
