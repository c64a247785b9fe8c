#pragma once
// What comes back. A request gets one event per token of each of its choices; exactly one event of each choice, its
// last, has `finish` set: that of the token that ended it, or one without a token (cancelled, failed). The request's
// last event has `summary` set, and no other has. Nothing of a stop string and no half of a code point ever
// stands in `text`: such bytes are held back until they are decided. Plain values: any thread; an event that a callback
// gets is the callback's for as long as it runs. Times are in milliseconds.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "candor/drafts.h"       // IWYU pragma: export
#include "candor/explanation.h"  // IWYU pragma: export
#include "candor/ids.h"
#include "candor/request.h"
#include "candor/result.h"

namespace candor {

struct Receipt;

enum class FinishReason : std::uint8_t {
  kStopEos,      // an end token of the model
  kStopId,       // one of SamplingParams::stop_ids
  kStopString,   // one of SamplingParams::stop
  kLength,       // max_tokens
  kContextFull,  // no room left, and OnContextFull::kStop
  kCancelled,
  kDeadline,  // Scheduling::deadline_ms passed
  kError,     // see TokenEvent::error
};
inline constexpr std::size_t kFinishReasons = 8;

// "stop_eos", "stop_id", "stop_string", "length", "context_full", "cancelled", "deadline", "error".
const char* to_string(FinishReason reason);

struct TokenLogprob {
  TokenId token = -1;
  float logprob = 0.0f;  // natural logarithm; -9999 where the probability is 0
  bool operator==(const TokenLogprob&) const = default;
};

struct Usage {
  std::int64_t prompt_tokens = 0;      // counted once, whatever the number of choices
  std::int64_t completion_tokens = 0;  // every token drawn for any choice, an end token included
  std::int64_t image_tokens = 0;       // of the prompt: rows of images
  std::int64_t cached_tokens = 0;      // of the prompt, found in the prefix cache
  std::int64_t disk_tokens = 0;        // of those, brought into it from the disk for this request
  std::int64_t truncated_tokens = 0;   // dropped by Request::max_prompt_tokens
  std::int64_t cropped_tokens = 0;     // dropped from the front because the context was full
  std::int64_t preemptions = 0;        // times that its blocks were taken and its tokens read again
  std::int64_t drafted_tokens = 0;     // drafts that were verified
  std::int64_t accepted_tokens = 0;    // of them, those that equal the tokens drawn
  DraftUsages drafts{};                // the same by who drafted
  std::int64_t token_layers = 0;       // tokens x layers computed for it
  std::uint64_t seed = 0;              // the one in effect
};

// What one step read of a prompt. Milliseconds since submit().
struct PromptChunk {
  double begin_ms = 0;
  double end_ms = 0;
  std::int64_t n_tokens = 0;
};

// In order; where there would be more than kMost, neighbours are one.
struct PromptChunks {
  static constexpr std::size_t kMost = 32;
  std::array<PromptChunk, kMost> chunks{};
  std::size_t n = 0;

  std::span<const PromptChunk> list() const { return {chunks.data(), n}; }
};

// Milliseconds since submit() unless said otherwise. A rate is 0 where nothing was measured.
struct RequestTimings {
  double images_ms = 0;             // of queue_ms: its images were decoded, and encoded unless they were already
  double template_ms = 0;           // of queue_ms: the chat template
  double tokenize_ms = 0;           // of queue_ms: text to tokens
  double queue_ms = 0;              // until its first row was computed
  double ttft_ms = 0;               // until its first text; its first token where no text came; of any choice
  double e2e_ms = 0;                // until the end
  double prefill_ms = 0;            // from the first row to the first token
  double decode_ms = 0;             // from the first token to the last
  double prefill_tokens_per_s = 0;  // prompt tokens computed (not cached) / prefill_ms
  double decode_tokens_per_s = 0;   // tokens after the first / decode_ms
  double itl_mean_ms = 0;           // between tokens of one choice
  double itl_max_ms = 0;
  PromptChunks prompt_chunks{};  // until the first token
};

// Delivered with the request's last event.
struct RequestSummary {
  Usage usage{};
  RequestTimings timings{};
  std::vector<std::string> warnings{};  // what was adjusted: "max_tokens 5000 cut to 380: the context has 512 tokens"
  // Where the request asks for it and no error ended it: what anyone can check the answers by (candor/receipt.h).
  std::shared_ptr<const Receipt> receipt{};
};

// Of one token of a prompt after those before it.
struct PromptLogprob {
  TokenLogprob logprob{};
  std::vector<TokenLogprob> top{};  // descending, then ascending id
  bool operator==(const PromptLogprob&) const = default;
};

struct TokenEvent {
  RequestId request = 0;
  std::int32_t choice = 0;                // below Request::n
  TokenId token = -1;                     // -1 in a last event that no token caused
  std::string text{};                     // what may be shown now; often the token's text, sometimes "", sometimes more
  std::optional<TokenLogprob> logprob{};  // of `token`, where logprobs >= 0
  std::optional<TokenLogprob> predicted{};   // where Request::predicted has another token and logprobs >= 0: that one
  std::vector<TokenLogprob> top_logprobs{};  // descending, then ascending id
  std::optional<TokenExplanation> explanation{};  // with SamplingParams::explain
  std::vector<PromptLogprob> prompt_logprobs{};   // in the request's first event only: of its second token and so on
  std::vector<float> embedding{};                 // with Request::pooling
  std::vector<WordWeight> sparse{};               // with Pooling::kSparse, ascending tokens
  std::vector<float> prompt_rows{};               // of Request::rows, in the request's only event
  std::optional<FinishReason> finish{};           // set in the choice's last event only
  std::optional<std::size_t> stop_index{};        // which of SamplingParams::stop or stop_ids ended it
  std::optional<double> score{};                  // of a beam search's answer, with its last event
  std::optional<Error> error{};                   // with FinishReason::kError
  std::optional<RequestSummary> summary{};        // set in the request's last event only
};

// Everything of one choice.
struct CompletedChoice {
  std::string text{};
  std::vector<TokenId> tokens{};                          // an end token or stop id that ended the text included
  std::vector<TokenLogprob> logprobs{};                   // one per token, where asked for
  std::vector<std::vector<TokenLogprob>> top_logprobs{};  // one list per token, where asked for
  FinishReason finish = FinishReason::kLength;
  std::optional<std::size_t> stop_index{};
  std::optional<double> score{};  // of a beam search
};

// Everything of one request, as Engine::generate returns it: choice 0, and the others where there are any.
struct Completion : CompletedChoice {
  std::vector<CompletedChoice> more_choices{};  // choices 1 to n - 1
  RequestId request = 0;
  RequestSummary summary{};
  std::vector<PromptLogprob> prompt_logprobs{};
  std::vector<float> embedding{};
  std::vector<WordWeight> sparse{};
  std::vector<float> prompt_rows{};
};

}  // namespace candor
