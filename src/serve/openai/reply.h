#pragma once
// What a client gets back for a generation: one JSON object, or the chunks of a stream, in OpenAI's form. Fed with the
// engine's events by one thread at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "serve/openai/api_request.h"
#include "text/chat/output_parser.h"

namespace candor::openai {

// What all chunks of a reply share.
struct ReplyHead {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
  std::string fingerprint;
  bool is_stream = false;
  bool include_usage = false;
  bool wants_logprobs = false;
  bool only_one_call = false;
  bool as_functions = false;
  bool wants_prompt_logprobs = false;
  size_t n_per_prompt = 1;             // choices
  std::vector<EchoedPrompt> echoed{};  // one per prompt, or none
  std::vector<std::string> stops{};    // as asked for, to tell which one ended a text
  std::vector<TokenId> stop_ids{};
  double decode_limit = 0;  // tokens a second that this machine could give one request; 0: unknown
  text::OutputForm form{};  // what is taken apart
  std::vector<std::string> warnings{};
};

class Reply {
 public:
  using Emit = std::function<void(const Json& chunk)>;

  virtual ~Reply() = default;
  // Before the first event of a stream.
  virtual void open(size_t choice, const Emit& emit) = 0;
  // In a stream, emits what may be shown; else keeps it.
  virtual void on_event(size_t choice, const TokenEvent& event, const Emit& emit) = 0;
  // The whole reply, or a stream's last chunk where usage was asked for. After every choice has ended.
  virtual Json whole() = 0;
  virtual void close(const Emit& emit) = 0;
};

std::unique_ptr<Reply> make_chat_reply(const Engine& engine, ReplyHead head, size_t n_choices);
std::unique_ptr<Reply> make_completion_reply(const Engine& engine, ReplyHead head, size_t n_choices);

// Sums over the prompts of one reply.
struct ReplyUsage {
  Usage usage{};
  RequestTimings timings{};
  int64_t reasoning_tokens = 0;
  void add(const RequestSummary& summary);
};

// Parts that both forms use.
std::string finish_reason(FinishReason reason);
// What finish_reason() does not tell: the stop string or id that was met, "context_full", "deadline", "cancelled". Null
// for a plain end.
Json stop_reason(const ReplyHead& head, const TokenEvent& event);
Json usage_json(const ReplyUsage& usage);
Json timings_json(const ReplyUsage& usage, double decode_limit);
// "token", "logprob", "bytes"
Json token_json(const Engine& engine, const TokenLogprob& token);
std::string token_text(const Engine& engine, TokenId token);
// How one token came about.
Json explanation_json(const Engine& engine, const TokenEvent& event);
// As vLLM shows them: null for the first token, then objects by token id.
Json prompt_logprobs_json(const Engine& engine, const std::vector<PromptLogprob>& logprobs);
// A number that JSON can hold.
float finite_logprob(float logprob);
std::string fingerprint_of(const ModelInfo& info);

}  // namespace candor::openai
