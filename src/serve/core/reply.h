#pragma once
// The reply to a generation in the format of one API: one JSON object, or the chunks of a stream. One thread at a time
// feeds it the engine's events.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "serve/core/json_body.h"
#include "text/chat/output_parser.h"

namespace candor::serve {

// What all chunks of a reply share.
struct ReplyHead {
  std::string id;            // the interface's prefix and the number
  std::string number;        // of the reply, sixteen hexadecimal digits: no other has it
  int64_t created = 0;       // seconds since 1970
  std::string model;         // as the client wrote it
  std::string fingerprint;
  bool is_stream = false;
  int64_t n_early = 0;       // frames that the stream has said before (core/early_stream.h)
  bool wants_logprobs = false;
  bool only_one_call = false;
  size_t n_per_prompt = 1;           // choices
  std::vector<std::string> stops{};  // as asked for, to tell which one ended a text
  std::vector<TokenId> stop_ids{};
  double decode_limit = 0;  // tokens a second that this machine could give one request; 0: unknown
  text::OutputForm form{};  // what is taken apart
  std::vector<std::string> warnings{};
};

// What is known of the work behind a stream that has been silent.
struct Waiting {
  double ms = 0;            // since the stream was opened
  PromptProgress prompt{};  // the sum over the prompts of the reply that are in work
};

class Reply {
 public:
  using Emit = std::function<void(const Json& chunk)>;

  virtual ~Reply() = default;
  // Before the first event of a stream, once for each choice.
  virtual void open(size_t choice, const Emit& emit) = 0;
  // In a stream, emits what may be shown; else keeps it.
  virtual void on_event(size_t choice, const TokenEvent& event, const Emit& emit) = 0;
  // An open stream has been silent for some seconds: what tells the client that its work goes on.
  virtual void on_wait(const Waiting& /*waiting*/, const Emit& /*emit*/) {}
  // Nothing more is needed: what is still in work is cancelled, and its last events come.
  virtual bool has_enough() const { return false; }
  // An error that ends an open stream. False where it is the interface's plain error, as one chunk.
  virtual bool on_error(const Error& /*error*/, const Emit& /*emit*/) { return false; }
  // The whole reply, after every choice has ended.
  virtual Json whole() = 0;
  // Instead of it, the end of a stream.
  virtual void close(const Emit& emit) = 0;
};

// Sums over the prompts of one reply.
struct ReplyUsage {
  Usage usage{};
  RequestTimings timings{};
  int64_t reasoning_tokens = 0;
  void add(const RequestSummary& summary);
};

// Parts that several interfaces use.
// The text ended because there was no room or no time for more.
bool is_cut(FinishReason reason);
// What a plain end and a cut do not tell: the stop string or id that was met, "context_full", "deadline", "cancelled".
// Null for a plain end.
Json stop_reason(const ReplyHead& head, const TokenEvent& event);
// Where only one call was asked for, and the model wrote another one.
std::string left_out_call(const std::string& name);
// As llama.cpp says it: total, cache, processed, time_ms.
Json prompt_progress_json(const Waiting& waiting);
Json timings_json(const ReplyUsage& usage, double decode_limit);
// "token", "logprob", "bytes"
Json token_json(const Engine& engine, const TokenLogprob& token);
std::string token_text(const Engine& engine, TokenId token);
// How one token came about.
Json explanation_json(const Engine& engine, const TokenEvent& event);
// A number that JSON can hold.
float finite_logprob(float logprob);
std::string fingerprint_of(const ModelInfo& info);
// The same with adapters: "fp_..._5+1234567890abcdef", of their content and scales.
std::string fingerprint_of(const std::string& base, const Engine& engine, const std::vector<RequestAdapter>& adapters);
// With every adapter that is loaded.
std::string fingerprint_of_all(const Engine& engine);

}  // namespace candor::serve
