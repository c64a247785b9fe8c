#pragma once
// What a caller asks for: a prompt, how each token is chosen, and when to stop. Plain data; checked by Engine::submit,
// which names the field and its range when a value is out of it. Any thread; an engine keeps its own copy. Numbers of
// tokens, unless a name says otherwise (deadline_ms).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "candor/adapters.h"
#include "candor/ids.h"
#include "candor/logits_hook.h"
#include "candor/reading.h"
#include "candor/result.h"

namespace candor {

// Limits of a request's lists.
inline constexpr std::size_t kMaxStopStrings = 16;
inline constexpr std::size_t kMaxStopStringBytes = 256;
inline constexpr std::size_t kMaxStopIds = 64;
inline constexpr std::int32_t kMaxLogprobs = 20;
inline constexpr std::int32_t kMaxChoices = 128;
inline constexpr std::int32_t kMaxBeams = 64;
inline constexpr std::int64_t kMaxExplainedRows = 4096;  // of a beam search
inline constexpr std::int32_t kMaxPriority = 1000;
inline constexpr std::size_t kMaxKeyBytes = 256;
inline constexpr std::size_t kMaxPromptRowFloats = std::size_t{1} << 28;    // of Request::rows: 1 GiB
inline constexpr std::size_t kMaxImages = 64;                               // of a request
inline constexpr std::int64_t kMaxAttentionShares = std::int64_t{1} << 20;  // of an answer: rows of images x tokens
inline constexpr std::size_t kMaxTokenRules = 1024;  // logit biases, bans, allowed ids, bad words
inline constexpr std::size_t kMaxBadWordBytes = 256;

// Added to the logit of a token, or of every token of a text, before anything else; `ban` takes them out.
struct LogitBias {
  TokenId token = -1;  // unused where text is not empty
  std::string text{};
  double bias = 0.0;  // [-100, 100]
  bool ban = false;
};

// Where stop strings and stop ids count, for a model whose vocabulary has <think> and </think>.
enum class StopScope : std::uint8_t { kBoth, kContent, kReasoning };

// A token is chosen by: allowed ids, biases and bans; then the stages of `samplers`; then renormalise and draw. Every
// default leaves its stage off. Greedy choice knows penalties and DRY, no other stage.
struct SamplingParams {
  double temperature = 1.0;        // 0 = greedy; at most 100
  double dynatemp_range = 0.0;     // the temperature varies by so much with the model's certainty; [0, 100]
  double dynatemp_exponent = 1.0;  // [0.01, 100]
  std::int64_t top_k = 0;          // 0 = off
  double typical_p = 1.0;          // [0, 1]; 1 = off
  double top_p = 1.0;              // [0, 1]; 1 = off
  double min_p = 0.0;              // [0, 1]; 0 = off
  double xtc_probability = 0.0;    // [0, 1]; 0 = off
  double xtc_threshold = 0.1;      // [0, 1]

  double repetition_penalty = 1.0;  // [0.01, 100], on prompt and output; 1 = off
  double frequency_penalty = 0.0;   // [-2, 2], on the output
  double presence_penalty = 0.0;    // [-2, 2], on the output
  std::int64_t repeat_last_n = -1;  // the penalties look at the newest so many tokens; -1 = all
  double dry_multiplier = 0.0;      // [0, 100]; 0 = off
  double dry_base = 1.75;           // [1, 10]
  std::int64_t dry_allowed_length = 2;
  std::int64_t dry_penalty_last_n = -1;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};  // tokens that hold one end a repetition
  std::int64_t no_repeat_ngram_size = 0;  // no sequence of so many tokens stands twice in the text; 0 = off

  std::vector<LogitBias> logit_bias{};
  std::vector<TokenId> allowed_token_ids{};  // empty = all
  std::vector<std::string>
      bad_words{};                      // never completed as the tokenizer writes them, with and without a space before
  std::vector<std::string> samplers{};  // order of the stages; empty = penalties, dry, temperature, top_k, typical_p,
                                        // top_p, min_p, xtc; one that is on must not be missing

  std::optional<std::uint64_t> seed{};       // absent: one is made and reported in Usage
  std::optional<std::int64_t> max_tokens{};  // absent: until a stop or the context's end; 0: with prompt_logprobs
  std::int64_t min_tokens = 0;               // before so many, no end token and no stop id is chosen
  std::vector<std::string> stop{};           // ends the text before the string, wherever its tokens' borders lie
  std::vector<TokenId> stop_ids{};           // ends the text like an end token
  StopScope stop_scope = StopScope::kBoth;   // of stop and stop_ids; other than kBoth only where the model reasons
  bool ignore_eos = false;                   // the model's end tokens do not end the text
  std::int32_t logprobs = -1;                // -1 = none; n = the chosen token's and the n most likely
  std::int32_t prompt_logprobs = -1;         // as logprobs, of the prompt's tokens after the first; the model's own
  bool logprobs_after_chain = false;         // of what is drawn from, not of the model's own distribution
  bool explain = false;                      // each event tells how its token came about
  bool attention = false;                    // with explain: and where its row looked in the prompt's images
  bool speculate = true;                     // where the engine does
};

// How a constraint is written; kChoice: a JSON array of strings.
enum class GrammarKind : std::uint8_t { kJsonSchema, kJsonObject, kRegex, kLark, kChoice, kGbnf };

// The output obeys it, or the request is refused.
struct ConstraintSpec {
  GrammarKind kind = GrammarKind::kJsonObject;
  std::string
      source{};  // the schema, the pattern, the grammar (Lark, GBNF), or a JSON array of strings; unused by kJsonObject
  // A prompt may end inside of a reasoning section (<think>); the constraint begins behind it. With this, the model may
  // also open one by its first token, unless the prompt ends with a closed one.
  bool may_reason_first = false;
  // A schema's words that are no keywords have no effect, and are named in the summary's warnings; here they are
  // refused.
  bool is_strict = false;
};

inline constexpr std::string_view kImageMark = "<__media__>";  // of a TextPrompt

// Text that is continued as it stands.
struct TextPrompt {
  std::string text{};
  bool add_special = true;     // the beginning token, where the model wants one
  bool parse_special = false;  // control tokens written in the text become their ids
  // Files, as of a Message; each stands for a kImageMark of the text, in order. They need parse_special.
  std::vector<std::string> images{};
};

struct Message {
  std::string role{};  // "system", "user", "assistant", or whatever the model's template knows
  std::string content{};
  // A JSON object whose keys join the message for the template: "name", "tool_calls", "tool_call_id",
  // "reasoning_content"; a "content" here replaces the one above (null, or a list of parts). Strings in it stay text,
  // too. Empty: none.
  std::string extra_json{};
  // Files, as they are: JPEG, PNG, WebP, GIF (the first frame) or BMP. Each stands for a part {"type": "image"} of the
  // content in `extra_json`, in order.
  std::vector<std::string> images{};
};

// A conversation, rendered by the model's own template. Control tokens in `content` stay text.
struct ChatPrompt {
  std::vector<Message> messages{};
  bool add_generation_prompt = true;  // ends with the opening of the assistant's turn
  bool continue_final = false;        // instead: ends where the last message's content ends, which is then continued
  std::string tools_json{};           // a JSON array of the functions that the model may call; empty: none
  std::string kwargs_json{};          // a JSON object, further variables of the template; empty: none
};

using TokenPrompt = std::vector<TokenId>;
using Prompt = std::variant<TextPrompt, ChatPrompt, TokenPrompt, PairPrompt>;

enum class OnContextFull : std::uint8_t {
  kStop,  // ends with FinishReason::kContextFull
  kCrop,  // drops the oldest tokens, reads the rest again, goes on; counted in Usage
};

// When a request's turn comes, and what it shares with others. Nothing here changes an answer.
struct Scheduling {
  std::int32_t priority = 0;        // -kMaxPriority to kMaxPriority; higher is sooner; waiting raises it slowly
  std::string fair_key{};           // among equal priorities the key that was served least comes first: a user, say
  double deadline_ms = 0.0;         // since submit(); then it ends with kDeadline. 0 = none
  double prompt_deadline_ms = 0.0;  // the same, as long as it has no token
  std::string cache_scope{};        // the prefix cache is shared within a scope only
};

// Instead of drawing: the n likeliest answers that a search over `width` texts side by side finds. It knows bans,
// penalties, DRY, constraints and stops, and no other stage; nothing is streamed before its end. An answer's score is
// the sum of its tokens' logprobs / length^length_penalty, an end token counted. Width 1 is greedy decoding. Logprobs
// after the chain are those of what these stages leave; of width 1 of the best alone: 0. With `explain` all is kept
// until the end, so that width * tokens may be kMaxExplainedRows at most.
struct BeamSearch {
  std::int32_t width = 4;       // [1, kMaxBeams], at most EngineOptions::max_running; Request::n at most as much
  double length_penalty = 1.0;  // [-10, 10]; above 0 longer answers gain
  // True: ends when `width` answers are complete. False: only when no text can become better than the n best of them.
  bool early_stopping = true;
};

struct Request {
  Prompt prompt{};
  std::vector<std::string> images{};  // of a TokenPrompt: files, as of a Message; its tokens have their rows, in order
  SamplingParams sampling{};
  std::int32_t n = 1;  // independent answers to one prompt, read once; choice i draws with the words of (seed, i)
  std::optional<BeamSearch> beams{};
  // From the first token on, or from </think> on where the prompt ends inside of a reasoning section.
  std::optional<ConstraintSpec> constraint{};
  Pooling pooling = Pooling::kNone;  // else the answer is one vector, and no text
  std::int32_t first_scored = 1;     // token with a prompt logprob; those before may come from the cache
  LogitsHook on_logits{};            // sees and changes each row that a token is chosen from
  // Of those that the engine holds, added in the order of their names; [0, kMaxRequestAdapters].
  std::vector<RequestAdapter> adapters{};
  PromptRows rows = PromptRows::kNone;              // else the answer is these rows, and no text
  std::optional<std::int64_t> max_prompt_tokens{};  // a longer prompt loses tokens; counted in Usage
  PromptCut prompt_cut = PromptCut::kStart;
  std::optional<bool> normalise{};  // whether a vector's length becomes 1; absent: as its Pooling says
  OnContextFull on_context_full = OnContextFull::kStop;
  bool receipt = false;  // RequestSummary::receipt is wanted
  // What the answers are believed to be, one list a choice. They are read as drafts as far as they are right, at the
  // pace of a prompt; no bit of an answer changes.
  std::vector<std::vector<TokenId>> predicted{};
  Scheduling scheduling{};
};

}  // namespace candor
