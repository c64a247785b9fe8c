#include "engine/request/request_check.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/hash.h"
#include "candor/event.h"
#include "engine/request/adapter_choice.h"
#include "engine/request/beams.h"
#include "engine/request/output_text.h"
#include "engine/request/receipt_notes.h"
#include "engine/request/stopwatch.h"
#include "engine/request/token_rules.h"
#include "sample/beam_scorer.h"
#include "sample/chain.h"
#include "sample/params.h"
#include "sample/sampler.h"
#include "text/chat/turns.h"

namespace candor::engine {
namespace {

Error invalid(const char* param, std::string message) {
  return {ErrorKind::kInvalidInput, std::move(message), param};
}

Result<void> check_stops(const SamplingParams& sampling) {
  if (sampling.stop.size() > kMaxStopStrings) {
    return invalid("stop", "stop has " + std::to_string(sampling.stop.size()) + " strings, expected at most " +
                               std::to_string(kMaxStopStrings));
  }
  for (const std::string& text : sampling.stop) {
    if (!text.empty() && text.size() <= kMaxStopStringBytes) continue;
    return invalid("stop", "stop has a string of " + std::to_string(text.size()) + " bytes, expected 1 to " +
                               std::to_string(kMaxStopStringBytes));
  }
  if (sampling.stop_ids.size() <= kMaxStopIds) return {};
  return invalid("stop_ids", "stop_ids has " + std::to_string(sampling.stop_ids.size()) + " ids, expected at most " +
                                 std::to_string(kMaxStopIds));
}

Result<ChoiceRules> make_rules(const SamplingParams& sampling, const text::Tokenizer& tokenizer) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  auto chain = sample::make_chain_params(sampling);
  if (!chain) return chain.error();
  const auto shown = sample::check_range("prompt_logprobs", sampling.prompt_logprobs, -1, kMaxLogprobs);
  if (!shown) return shown.error();
  const int64_t least_tokens = sampling.prompt_logprobs >= 0 ? 0 : 1;
  const auto max_tokens = sample::check_range("max_tokens", sampling.max_tokens.value_or(1), least_tokens, kMax);
  if (!max_tokens) return max_tokens.error();
  const auto logprobs = sample::check_range("logprobs", sampling.logprobs, -1, kMaxLogprobs);
  if (!logprobs) return logprobs.error();
  if (auto stops = check_stops(sampling); !stops) return stops.error();
  if (auto ids = check_tokens(sampling.stop_ids, tokenizer); !ids) return invalid("stop_ids", ids.error().message);
  if (sampling.max_tokens && sampling.min_tokens > *sampling.max_tokens) {
    return invalid("min_tokens", "min_tokens is " + std::to_string(sampling.min_tokens) +
                                     ", expected at most max_tokens, " + std::to_string(*sampling.max_tokens));
  }
  if (auto added = add_token_rules(sampling, tokenizer, *chain); !added) return added.error();
  ChoiceRules rules;
  rules.chain = std::move(*chain);
  rules.logprobs_of = sampling.logprobs_after_chain ? sample::LogprobsOf::kChain : sample::LogprobsOf::kModel;
  rules.n_logprobs = sampling.logprobs;
  rules.max_tokens = sampling.max_tokens.value_or(0);
  rules.stop_ids = sampling.stop_ids;
  rules.ignore_eos = sampling.ignore_eos;
  rules.may_speculate = sampling.speculate;
  rules.explains = sampling.explain;
  rules.n_prompt_logprobs = sampling.prompt_logprobs;
  rules.makes_text = sampling.max_tokens != 0;
  return rules;
}

Error unsupported(const char* param, std::string message) {
  return {ErrorKind::kUnsupported, std::move(message), param};
}

constexpr const char* kOnlyReads =
    "this model reads texts and writes none: ask for an embedding, or load a model that generates text";

// What is asked of a model without words to choose from, or of its head.
Result<void> check_reading(const Request& request, const ReadingInfo& reading) {
  const bool reads = request.pooling != Pooling::kNone || request.rows != PromptRows::kNone;
  if (!reading.writes && !reads) return unsupported("prompt", kOnlyReads);
  if (!reading.writes && request.rows == PromptRows::kLogits) return unsupported("rows", kOnlyReads);
  if (request.pooling == Pooling::kSparse && !reading.weighs_words) {
    return unsupported("pooling",
                       "this model gives no sparse vectors: its files hold neither a SPLADE pooling nor "
                       "weights of tokens (BGE M3's sparse_linear.pt)");
  }
  const bool wants_labels = request.pooling == Pooling::kLabels || request.rows == PromptRows::kLabels;
  if (!wants_labels) return {};
  const char* field = request.pooling == Pooling::kLabels ? "pooling" : "rows";
  if (reading.labels.empty()) {
    return unsupported(field, "this model has no head that scores or classifies: its files hold no cls.output");
  }
  if (reading.labels_tokens == (request.rows == PromptRows::kLabels)) return {};
  return unsupported(field, reading.labels_tokens ? "this model's labels are those of tokens: ask for rows of labels"
                                                  : "this model's labels are those of texts, not of tokens");
}

Result<void> add_rows(const Request& request, size_t n_tokens, const RequestLimits& limits, ChoiceRules& rules) {
  if (request.rows == PromptRows::kNone) return {};
  if (request.n != 1 || request.constraint || request.beams || request.pooling != Pooling::kNone) {
    return invalid("rows", "rows of the prompt come alone: without n, beams, constraint and pooling");
  }
  const auto width = request.rows == PromptRows::kLabels    ? limits.reading->labels.size()
                     : request.rows == PromptRows::kVectors ? static_cast<size_t>(limits.reading->token_dim)
                     : request.rows == PromptRows::kLogits  ? static_cast<size_t>(limits.n_vocab)
                                                            : static_cast<size_t>(limits.dim);
  if (n_tokens > kMaxPromptRowFloats / width) {
    return invalid("rows", "rows has " + std::to_string(n_tokens) + " x " + std::to_string(width) +
                               " numbers, expected at most " + std::to_string(kMaxPromptRowFloats) + ": give at most " +
                               std::to_string(kMaxPromptRowFloats / width) + " tokens at once");
  }
  rules.rows = request.rows;
  rules.makes_text = false;
  return {};
}

// Row i shows the token behind it.
Result<void> add_first_scored(const Request& request, size_t n_tokens, ActiveRequest& active) {
  if (request.first_scored == 1) return {};
  if (request.sampling.prompt_logprobs < 0 || request.rows != PromptRows::kNone || request.pooling != Pooling::kNone) {
    return invalid("first_scored", "first_scored goes with prompt_logprobs, and not with rows or pooling");
  }
  const auto first = sample::check_range("first_scored", request.first_scored, 1, static_cast<int64_t>(n_tokens));
  if (!first) return first.error();
  active.spec.first_shown = request.first_scored - 1;
  return {};
}

// Which rows become one.
Pooling rows_of(Pooling asked, const RequestLimits& limits) {
  if (asked == Pooling::kLabels) return limits.label_pooling;
  if (asked != Pooling::kModel) return asked;
  return limits.reading->pooling == Pooling::kNone ? Pooling::kMean : limits.reading->pooling;
}

// Whether more rows than the last one count.
bool looks_at_rows(Pooling pooling) {
  return pooling == Pooling::kMean || pooling == Pooling::kWeighted || pooling == Pooling::kFirst ||
         pooling == Pooling::kSparse;
}

Result<void> add_pooling(const Request& request, const RequestLimits& limits, ChoiceRules& rules) {
  const bool pools = request.pooling != Pooling::kNone;
  if (pools && (request.n != 1 || request.constraint)) {
    return invalid("pooling",
                   "pooling gives one vector: n is " + std::to_string(request.n) + ", expected 1, and no constraint");
  }
  const bool is_shown = pools || request.rows != PromptRows::kNone || rules.n_prompt_logprobs >= 0;
  if (is_shown && request.on_context_full == OnContextFull::kCrop) {
    return invalid("on_context_full", "on_context_full is crop, expected stop: every token of the prompt is looked at");
  }
  rules.pooling = rows_of(request.pooling, limits);
  rules.asked_pooling = request.pooling;
  rules.normalise = request.normalise;
  rules.makes_text = rules.makes_text && !pools;
  return {};
}

Result<void> check_key(const char* name, const std::string& key) {
  if (key.size() <= kMaxKeyBytes) return {};
  return invalid(name, std::string(name) + " has " + std::to_string(key.size()) + " bytes, expected at most " +
                           std::to_string(kMaxKeyBytes));
}

// Whatever decides the request's turn; nothing of it touches the answer.
Result<void> schedule(const Scheduling& scheduling, const RequestLimits& limits, int64_t now_ns,
                      ActiveRequest& active) {
  constexpr double kMaxMs = 1e12;
  const auto priority = sample::check_range("priority", scheduling.priority, -kMaxPriority, kMaxPriority);
  if (!priority) return priority.error();
  for (const auto& [name, ms] : {std::pair("deadline_ms", scheduling.deadline_ms),
                                 std::pair("prompt_deadline_ms", scheduling.prompt_deadline_ms)}) {
    if (!(ms >= 0.0 && ms <= kMaxMs))
      return invalid(name, std::string(name) + " is " + std::to_string(ms) + ", expected 0 to 1e12");
  }
  if (auto key = check_key("fair_key", scheduling.fair_key); !key) return key.error();
  if (auto scope = check_key("cache_scope", scheduling.cache_scope); !scope) return scope.error();
  active.spec.priority = scheduling.priority;
  active.spec.share_key = hash_bytes(std::as_bytes(std::span(scheduling.fair_key)));
  active.spec.key = limits.key;
  active.spec.key.scope = scheduling.cache_scope;
  const auto at = [now_ns](double ms) { return ms > 0.0 ? now_ns + static_cast<int64_t>(ms * 1e6) : kNever; };
  active.deadline_ns = at(scheduling.deadline_ms);
  active.prompt_deadline_ns = at(scheduling.prompt_deadline_ms);
  return {};
}

// Nobody asked for a certain one: short enough to be typed again.
uint64_t make_seed(int64_t now_ns, const void* salt) {
  return hash_mix(static_cast<uint64_t>(now_ns), reinterpret_cast<uintptr_t>(salt)) >> 32;
}

Result<void> fit_context(const Request& request, int32_t n_ctx, ActiveRequest& active) {
  std::vector<TokenId>& tokens = active.spec.prompt;
  const size_t room = static_cast<size_t>(n_ctx);
  const std::string numbers =
      "the prompt has " + std::to_string(tokens.size()) + " tokens, the context holds " + std::to_string(n_ctx);
  if (request.on_context_full == OnContextFull::kStop) {
    const size_t n_answer = active.rules.makes_text ? 1 : 0;
    if (tokens.size() + n_answer <= room) return {};
    const std::string answer = active.rules.makes_text ? " with at least one for the answer" : "";
    return Error{.kind = ErrorKind::kContextLength,
                 .message = numbers + answer + "; shorten it, or raise the context limit",
                 .field = "prompt",
                 .figures = {{"n_prompt_tokens", std::ssize(tokens)}, {"n_ctx", n_ctx}}};
  }
  active.spec.on_full = OnContextFull::kCrop;
  if (tokens.size() <= room) return {};
  active.spec.n_cropped = static_cast<int64_t>(tokens.size() - room);
  tokens.erase(tokens.begin(), tokens.end() - n_ctx);
  active.summary.warnings.push_back(numbers + ": only the newest are read");
  return {};
}

void warn_of_limit(const Request& request, int32_t n_ctx, ActiveRequest& active) {
  const int64_t room = int64_t{n_ctx} - static_cast<int64_t>(active.spec.prompt.size());
  const int64_t asked = request.sampling.max_tokens.value_or(0);
  if (active.spec.on_full == OnContextFull::kCrop || asked <= room) return;
  active.summary.warnings.push_back("max_tokens is " + std::to_string(asked) + ", but the context of " +
                                    std::to_string(n_ctx) + " tokens has room for " + std::to_string(room));
}

Result<void> check_attention(const Request& request, bool has_images, const RequestLimits& limits) {
  if (!request.sampling.attention) return {};
  if (!request.sampling.explain) {
    return invalid("attention", "attention is a part of explanations: set explain to true too");
  }
  if (!has_images) {
    return invalid("attention", "attention shows where tokens look in images, and the prompt has none: leave it out");
  }
  if (limits.info->shows_attention) return {};
  return unsupported("attention", "attention is not known where several ranks compute the model: use one");
}

// Every share is kept until somebody has read it. Behind the limit nothing is shown, which is said.
void limit_attention(const Request& request, const RequestLimits& limits, ActiveRequest& active) {
  const int64_t n_rows = active.summary.usage.image_tokens * (request.beams ? request.beams->width : request.n);
  active.rules.n_looks = std::max<int64_t>(1, kMaxAttentionShares / n_rows);
  const int64_t room = limits.n_ctx - active.summary.usage.prompt_tokens;
  if (request.sampling.max_tokens.value_or(room) <= active.rules.n_looks) return;
  active.summary.warnings.push_back("attention is told of the first " + std::to_string(active.rules.n_looks) +
                                    " tokens: the images have " + std::to_string(n_rows) + " rows");
}

// What is not known of images yet, or has no meaning with them, is refused.
Result<void> add_images(const Request& request, std::vector<PlacedTile> images, const RequestLimits& limits,
                        ActiveRequest& active) {
  CANDOR_TRY(check_attention(request, !images.empty(), limits));
  if (images.empty()) return {};
  if (request.on_context_full == OnContextFull::kCrop) {
    return unsupported("on_context_full", "on_context_full is crop, expected stop: an image is not cropped");
  }
  if (request.max_prompt_tokens) {
    return unsupported("max_prompt_tokens", "max_prompt_tokens would cut a prompt with images: leave it out");
  }
  if (active.rules.rows != PromptRows::kNone || looks_at_rows(active.rules.pooling)) {
    return unsupported("rows", "rows and pooling look at tokens: leave the images out");
  }
  if (active.rules.n_prompt_logprobs >= 0 && images.front().rows.is_seen_whole) {
    return unsupported("prompt_logprobs",
                       "prompt_logprobs with images: this model reads each image in one step, and so many rows are not "
                       "scored at once; leave the images out");
  }
  for (const PlacedTile& tile : images) {
    active.spec.images.push_back(tile.rows);
    active.summary.usage.image_tokens += tile.rows.n_rows;
  }
  active.images = std::move(images);
  if (request.sampling.attention) limit_attention(request, limits, active);
  return {};
}

Result<void> add_predicted(const Request& request, const RequestLimits& limits, ActiveRequest& active) {
  if (request.predicted.empty()) return {};
  if (request.predicted.size() != active.choices.size()) {
    return invalid("predicted", "predicted has " + std::to_string(request.predicted.size()) +
                                    " answers, expected as many as n, " + std::to_string(request.n));
  }
  for (size_t i = 0; i < request.predicted.size(); ++i) {
    const std::vector<TokenId>& tokens = request.predicted[i];
    if (auto known = check_tokens(tokens, *limits.tokenizer); !known)
      return invalid("predicted", known.error().message);
    active.choices[i].predicted = tokens;
  }
  return {};
}

bool opens_text(std::span<const TokenId> tokens, const text::Tokenizer& tokenizer) {
  return std::ranges::all_of(tokens, [&](TokenId id) { return tokenizer.kind(id) == text::TokenKind::kControl; });
}

// Of an explained search every row is kept until its end.
Result<void> check_explained_rows(const Beams& beams, bool explains) {
  const int64_t most = kMaxExplainedRows / beams.width();
  const int64_t asked = beams.params.max_length;
  if (!explains || (asked > 0 && asked <= most)) return {};
  return unsupported("explain", "explain with " + std::to_string(beams.width()) + " beams and " +
                                    (asked > 0 ? "max_tokens " + std::to_string(asked) : "no max_tokens") +
                                    ", expected max_tokens 1 to " + std::to_string(most) +
                                    ": every row is kept until the search is over");
}

// REQUIRES: the context was fitted and the rules are made.
Result<void> prepare_beams(const Request& request, const RequestLimits& limits, ActiveRequest& active) {
  const BeamSearch& beams = *request.beams;
  const auto width = sample::check_range("beams", beams.width, 1, std::min(kMaxBeams, limits.max_running));
  if (!width) return width.error();
  if (request.n > beams.width) {
    return invalid("n", "n is " + std::to_string(request.n) + ", expected at most the number of beams, " +
                            std::to_string(beams.width));
  }
  if (!(beams.length_penalty >= -10.0 && beams.length_penalty <= 10.0)) {
    return invalid("length_penalty",
                   "length_penalty is " + std::to_string(beams.length_penalty) + ", expected -10 to 10");
  }
  if (active.rules.n_prompt_logprobs >= 0 || request.pooling != Pooling::kNone) {
    return unsupported("beams", "a beam search shows no prompt: no prompt_logprobs, no pooling");
  }
  active.rules.chain.temperature = 0.0;
  active.rules.may_speculate = false;
  const int64_t room = int64_t{limits.n_ctx} - static_cast<int64_t>(active.spec.prompt.size());
  const int64_t asked = active.rules.max_tokens;
  const bool is_bounded = active.spec.on_full == OnContextFull::kStop;
  active.beams.emplace(sample::BeamParams{
      .asked = beams, .max_length = is_bounded && (asked == 0 || asked > room) ? room : asked, .n_best = request.n});
  active.spec.n_places = beams.width;
  return check_explained_rows(*active.beams, active.rules.explains);
}

// Does the prompt end inside of a reasoning section?
bool opens_in_reasoning(std::span<const TokenId> prompt, const ReasoningTokens& marks) {
  if (!marks.exist()) return false;
  const auto is_mark = [&](TokenId token) { return token == marks.open || token == marks.close; };
  const auto last = std::find_if(prompt.rbegin(), prompt.rend(), is_mark);
  return last != prompt.rend() && *last == marks.open;
}

// Does nothing but white space follow the end of a reasoning section?
bool closes_reasoning(std::span<const TokenId> prompt, TokenId close, const text::Tokenizer& tokenizer) {
  const auto is_blank = [&](TokenId token) {
    return tokenizer.bytes_of(token).find_first_not_of(" \t\r\n") == std::string_view::npos && token != close;
  };
  const auto last = std::find_if_not(prompt.rbegin(), prompt.rend(), is_blank);
  return last != prompt.rend() && *last == close;
}

Result<OutputText> prepare_output(const Request& request, std::span<const TokenId> prompt,
                                  const text::Tokenizer& tokenizer) {
  const SamplingParams& sampling = request.sampling;
  const ReasoningTokens marks = reasoning_tokens(tokenizer);
  const bool is_inside = opens_in_reasoning(prompt, marks);
  const bool may_open = request.constraint && request.constraint->may_reason_first && marks.exist() && !is_inside &&
                        !closes_reasoning(prompt, marks.close, tokenizer);
  if (sampling.stop_scope != StopScope::kBoth && !marks.exist()) {
    return unsupported("stop_scope",
                       "stop_scope tells reasoning from content, but this model's vocabulary has no "
                       "<think> and </think>");
  }
  return OutputText(tokenizer, {.at_text_start = opens_text(prompt, tokenizer),
                                .stops = sampling.stop,
                                .scope = sampling.stop_scope,
                                .opens_in_reasoning = is_inside,
                                .may_open_reasoning = may_open});
}

}  // namespace

Result<void> check_tokens(std::span<const TokenId> tokens, const text::Tokenizer& tokenizer) {
  const int32_t n_vocab = tokenizer.n_vocab();
  for (const TokenId id : tokens) {
    if (id >= 0 && id < n_vocab) continue;
    return invalid("prompt", "token id " + std::to_string(id) + " is not in the vocabulary, expected 0 to " +
                                 std::to_string(n_vocab - 1));
  }
  return {};
}

Result<std::int64_t> truncate_prompt(const Request& request, const text::Tokenizer& tokenizer, ReadPrompt& prompt) {
  if (!request.max_prompt_tokens) return 0;
  const auto kept =
      sample::check_range("max_prompt_tokens", *request.max_prompt_tokens, 1, std::numeric_limits<int64_t>::max());
  if (!kept) return kept.error();
  std::vector<TokenId>& tokens = prompt.tokens;
  const std::int64_t n_dropped = std::ssize(tokens) - *request.max_prompt_tokens;
  if (n_dropped <= 0) return 0;
  if (prompt.is_whole) {
    return invalid("max_prompt_tokens", "the pair has " + std::to_string(tokens.size()) +
                                            " tokens in the model's own template, which is not cut: shorten the texts");
  }
  if (request.prompt_cut == PromptCut::kStart) {
    tokens.erase(tokens.begin(), tokens.begin() + n_dropped);
    return n_dropped;
  }
  const text::SpecialTokens& special = tokenizer.special();
  const std::int64_t n_marks = special.add_eos && tokens.back() == special.eos ? 1 : 0;
  const bool is_pair = std::holds_alternative<PairPrompt>(request.prompt);
  const std::int64_t first = is_pair ? prompt.second_begin : special.add_bos ? 1 : 0;
  if (std::ssize(tokens) - n_marks - n_dropped < first) {
    return invalid("max_prompt_tokens", "max_prompt_tokens is " + std::to_string(*request.max_prompt_tokens) +
                                            ", which leaves no room for the text: what stands before it has " +
                                            std::to_string(first + n_marks) + " tokens");
  }
  tokens.erase(tokens.end() - n_marks - n_dropped, tokens.end() - n_marks);
  return n_dropped;
}

Result<std::unique_ptr<ActiveRequest>> prepare_request(const Request& request, ReadPrompt prompt,
                                                       const RequestLimits& limits, int64_t now_ns) {
  if (auto reading = check_reading(request, *limits.reading); !reading) return reading.error();
  std::vector<TokenId>& tokens = prompt.tokens;
  const bool reads_last = request.pooling == Pooling::kLabels && limits.label_pooling == Pooling::kLast;
  while (reads_last && limits.label_pad && tokens.size() > 1 && tokens.back() == *limits.label_pad) tokens.pop_back();
  auto rules = make_rules(request.sampling, *limits.tokenizer);
  if (!rules) return rules.error();
  if (tokens.empty()) {
    const bool is_ids = std::holds_alternative<TokenPrompt>(request.prompt);
    return invalid("prompt", is_ids ? "the prompt is an empty list, expected one token id or more"
                                    : "the prompt is empty, and this model has no beginning token to start from");
  }
  const auto n = sample::check_range("n", request.n, 1, limits.max_choices);
  if (!n) return n.error();
  auto active = std::make_unique<ActiveRequest>(now_ns);
  if (auto turn = schedule(request.scheduling, limits, now_ns, *active); !turn) return turn.error();
  if (auto chosen = choose_adapters(request, *limits.adapters, *active); !chosen) return chosen.error();
  if (auto pooled = add_pooling(request, limits, *rules); !pooled) return pooled.error();
  if (auto rows = add_rows(request, tokens.size(), limits, *rules); !rows) return rows.error();
  const auto output = prepare_output(request, tokens, *limits.tokenizer);
  if (!output) return output.error();
  active->choices.reserve(static_cast<size_t>(request.n));
  for (int32_t i = 0; i < request.n; ++i) active->choices.emplace_back(*output);
  active->n_open = request.n;
  if (request.on_logits) {
    rules->on_logits = request.on_logits;
    rules->may_speculate = false;
  }
  active->rules = std::move(*rules);
  active->rules.seed = request.sampling.seed.value_or(make_seed(now_ns, active.get()));
  active->summary.usage.seed = active->rules.seed;
  if (auto scored = add_first_scored(request, tokens.size(), *active); !scored) return scored.error();
  active->spec.shows_prompt = active->rules.n_prompt_logprobs >= 0 || looks_at_rows(active->rules.pooling) ||
                              active->rules.rows != PromptRows::kNone;
  const bool shows_first = active->rules.pooling == Pooling::kFirst && active->rules.n_prompt_logprobs < 0;
  if (shows_first) active->spec.end_shown = 1;
  if (prompt.has_types) active->spec.second_text = prompt.second_begin;
  active->summary.usage.prompt_tokens = static_cast<int64_t>(tokens.size());
  if (auto noted = begin_receipt(request, prompt, limits, *active); !noted) return noted.error();
  if (auto predicted = add_predicted(request, limits, *active); !predicted) return predicted.error();
  if (auto added = add_images(request, std::move(prompt.images), limits, *active); !added) return added.error();
  active->spec.prompt = std::move(tokens);
  if (auto fits = fit_context(request, limits.n_ctx, *active); !fits) return fits.error();
  active->spec.turns = text::find_turns(active->spec.prompt, *limits.tokenizer);
  warn_of_limit(request, limits.n_ctx, *active);
  if (!request.beams) return active;
  if (auto beams = prepare_beams(request, limits, *active); !beams) return beams.error();
  return active;
}

}  // namespace candor::engine
