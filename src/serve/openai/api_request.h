#pragma once
// What a client asks of /v1/completions or /v1/chat/completions, checked, as requests for the engine.
// Where a field is refused, the error names it; a field without effect here is named in `warnings`.

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "serve/openai/fields.h"

namespace candor::openai {

inline constexpr size_t kMaxPrompts = 64;
inline constexpr size_t kMaxInputs = 2048;  // of an embedding

// What the parsers need to know of the server.
struct ApiLimits {
  std::string model;  // the id that it serves
  std::vector<std::string> aliases = {};
  int64_t n_ctx = 0;
  int64_t max_choices = 128;
  int32_t dim = 0;         // of an embedding
  bool is_strict = false;  // an unknown field is an error
};

// A prompt as `echo` shows it.
struct EchoedPrompt {
  std::string text{};
  std::vector<TokenId> tokens{};
};

// What the client calls the things that the engine may refuse.
struct FieldNames {
  std::string prompt = "prompt";
  std::string constraint = "response_format";
};

struct ApiRequest {
  std::string model;                // as the client wrote it
  std::vector<Request> requests{};  // one per prompt
  int32_t n_choices = 1;            // per prompt
  bool stream = false;
  bool include_usage = false;
  bool echo = false;
  std::vector<EchoedPrompt> echoed{};  // one per prompt, by read_echo()
  bool wants_prompt_logprobs = false;  // as vLLM shows them
  bool as_functions = false;           // calls in the form that was before tools
  bool is_chat = false;
  bool parallel_tool_calls = true;
  bool has_tools = false;
  bool must_call = false;  // the answer is one call, by constraint
  std::optional<ConstraintSpec> forced_call{};
  FieldNames names{};
  std::vector<std::string> warnings{};
};

// also: further fields, which the route itself reads.
Result<ApiRequest> parse_chat(const Json& body, const ApiLimits& limits, std::initializer_list<const char*> also = {});
Result<ApiRequest> parse_completion(const Json& body, const ApiLimits& limits);

struct EmbeddingRequest {
  std::string model;
  std::vector<Request> requests{};  // one per input
  size_t n_dimensions = 0;          // 0: all
  bool as_base64 = false;
  std::vector<std::string> warnings{};
};

Result<EmbeddingRequest> parse_embedding(const Json& body, const ApiLimits& limits);

// Reads every prompt, once and for all.
Result<void> read_echo(const Engine& engine, ApiRequest& request);

// The model's name, where given, is one that is served: else 404.
void check_model(Fields& fields, const ApiLimits& limits, std::string& model);
Error model_not_found(const std::string& model);

// messages, tools and template arguments.
std::optional<ChatPrompt> read_chat_prompt(Fields& fields);
// tools and tool_choice.
void read_tools(Fields& fields, ChatPrompt& chat, ApiRequest& result);
// Text, or token ids, or a list of either.
std::vector<Prompt> read_prompts(Fields& fields, const char* name, size_t at_most = kMaxPrompts);

// temperature, top_p, seed, stop, ...: what both endpoints share. default_max_tokens: absent = until the end.
SamplingParams read_sampling(Fields& fields, std::optional<int64_t> default_max_tokens, int64_t least_max_tokens);
// Penalties, biases, bans and the rarer stages.
void read_sampler(Fields& fields, SamplingParams& sampling);
// model, n, stream, stream_options, and what has no effect.
void read_common(Fields& fields, const ApiLimits& limits, ApiRequest& request);
// prompt_logprobs, of the whole reply only.
void read_prompt_logprobs(Fields& fields, ApiRequest& request, SamplingParams& sampling);
// truncate_prompt_tokens, as vLLM has it: a longer prompt loses its oldest tokens; -1 keeps what the context holds.
void read_truncation(Fields& fields, const ApiLimits& limits, Request& request);
// use_beam_search, as vLLM has it: n or best_of texts side by side.
void read_beams(Fields& fields, std::optional<int64_t> best_of, Request& request, std::vector<std::string>& warnings);
// priority, as vLLM has it: a lower value is served sooner.
Scheduling read_scheduling(Fields& fields);
// response_format and its kin; name: which of them it was.
std::optional<ConstraintSpec> read_constraint(Fields& fields, std::string& name);
// Unknown fields become warnings, or an error.
void settle_unknown(Fields& fields, const ApiLimits& limits, std::vector<std::string>& warnings);

// The error with the field's name in this API.
Error with_api_field(Error error, const FieldNames& names = {});

}  // namespace candor::openai
