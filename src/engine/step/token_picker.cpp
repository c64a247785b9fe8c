#include "engine/step/token_picker.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "candor/request.h"
#include "engine/request/image_attention.h"
#include "engine/request/stopwatch.h"
#include "sample/chain.h"

namespace candor::engine {
namespace {

Picked failed(TokenEvent& event, Error error) {
  event.token = kNoToken;
  event.error = std::move(error);
  return {.reason = FinishReason::kError};
}

}  // namespace

PickInput TokenPicker::input_of(const sched::PlannedSlice& slice, int32_t n_accepted, const StepResult& result) const {
  const sched::Sequence& sequence = *slice.sequence;
  PickInput input = input_behind(sequence, n_accepted, result.ready_ns);
  input.logits = result.logit_row(slice.out_row + n_accepted, tokenizer_.n_vocab());
  input.attention = result.attention_of(slice.out_row + n_accepted);
  if (n_accepted < slice.n_draft) input.draft = sequence.draft[static_cast<size_t>(n_accepted)];
  return input;
}

PickInput TokenPicker::input_behind(const sched::Sequence& sequence, int32_t n_accepted, int64_t now_ns) const {
  const bool has_room = sequence.on_full == OnContextFull::kCrop || sequence.n_tokens() + n_accepted + 1 < n_ctx_;
  return {.position = sequence.next_position() + static_cast<uint64_t>(n_accepted),
          .has_room = has_room,
          .now_ns = now_ns,
          .text = sequence.tokens};
}

Picked TokenPicker::pick(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  const Picked picked = pick_token(request, input, event);
  return picked.reason ? picked : add_text(request, input, event);
}

Picked TokenPicker::pick_token(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  if (auto chosen = choose(request, input, event); !chosen) return failed(event, std::move(chosen).error());
  const auto ended = add_token(request, input, event);
  if (ended) count_time(request, input, event);
  return {.token = pick_.token, .reason = ended};
}

Picked TokenPicker::add_text(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  Choice& choice = request.choice(input.choice);
  text::StopResult shown;
  auto reason = accept(event.token, choice.output, choice.constraint.get(), shown);
  if (!reason) return failed(event, std::move(reason).error());
  event.text = std::move(shown.text);
  event.stop_index = shown.hit;
  count_time(request, input, event);
  if (*reason) return {event.token, *reason};
  if (choice.n_made == request.rules.max_tokens) return {event.token, FinishReason::kLength};
  return {event.token, input.has_room ? std::nullopt : std::optional(FinishReason::kContextFull)};
}

void TokenPicker::count_time(ActiveRequest& request, const PickInput& input, const TokenEvent& event) {
  Choice& choice = request.choice(input.choice);
  const int64_t gap_ns = request.watch.on_token(input.now_ns, choice.last_token_ns, !event.text.empty());
  choice.last_token_ns = input.now_ns;
  if (gap_ns != kNever) gaps_ns_.record(static_cast<uint64_t>(gap_ns));
}

// The row as the caller's hook leaves it.
Result<std::span<const float>> TokenPicker::hooked_row(const ChoiceRules& rules, const PickInput& input) {
  const std::span<const float> logits = input.logits.get();
  if (!rules.on_logits) return logits;
  row_.assign(logits.begin(), logits.end());
  if (!rules.on_logits({.text = input.text, .n_output = input.n_output, .choice = input.choice, .logits = row_}))
    return fail(ErrorKind::kInvalidInput, "the logits hook failed", "on_logits");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto is_bad = [](float logit) { return !(logit < kInfinity); };
  if (const auto bad = std::ranges::find_if(row_, is_bad); bad != row_.end())
    return fail(ErrorKind::kInvalidInput,
                "the logits hook left " + std::to_string(*bad) + " for token " + std::to_string(bad - row_.begin()) +
                    ", expected a number or -infinity",
                "on_logits");
  return std::span<const float>(row_);
}

sample::PickRequest TokenPicker::request_for(const ChoiceRules& rules, const PickInput& input) {
  sample::PickRequest pick{.chain = rules.chain, .n_logprobs = rules.n_logprobs};
  pick.logprobs_of = rules.logprobs_of;
  pick.history = {input.text, input.n_output};
  pick.key = {.seed = rules.seed, .choice = static_cast<uint32_t>(input.choice), .position = input.position};
  return pick;
}

// nullptr: every token is allowed.
Result<const constrain::TokenMask*> TokenPicker::mask_for(OutputView output) {
  if (output.constraint == nullptr) return nullptr;
  if (output.needs_mask()) {
    CANDOR_ASSIGN(const constrain::TokenMask* mask, output.constraint->mask());
    if (output.text.opening() == kNoToken) return mask;
    mask_ = *mask;
    mask_.allow(output.text.opening());
    return &mask_;
  }
  for (TokenId token = 0; token < mask_.n_tokens(); ++token) mask_.allow(token);
  for (const TokenId end : tokenizer_.end_tokens()) mask_.forbid(end);
  return &mask_;
}

bool TokenPicker::plan(ActiveRequest& request, const PickInput& input, int32_t out_row, sample::RowPlan& plan) {
  const Choice& choice = request.choice(input.choice);
  if (request.rules.explains || request.rules.on_logits) return false;
  sample::PickRequest pick = request_for(request.rules, input);
  const auto mask = mask_for({choice.constraint.get(), choice.output});
  if (!mask) return false;
  pick.mask = *mask;
  return planner_.plan(pick, out_row, tokenizer_.n_vocab(), plan);
}

Result<void> TokenPicker::choose(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  const ChoiceRules& rules = request.rules;
  const Choice& choice = request.choice(input.choice);
  sample::PickRequest pick = request_for(rules, input);
  if (input.found && sampler_.finish(pick, *input.found, pick_)) return {};
  CANDOR_ASSIGN(pick.logits, hooked_row(rules, input));
  if (rules.explains) {
    TokenExplanation& explanation = event.explanation.emplace();
    explanation.was_drawn = !rules.chain.is_greedy();
    explanation.draw = static_cast<double>(sample::draw_of(pick.key));
    explanation.draft = input.draft;
    explanation.images = image_attention(request, input.attention);
    explainer_.begin(explanation, pick.history, rules.chain.bans);
    pick.observer = &explainer_;
  }
  CANDOR_ASSIGN(pick.mask, mask_for({choice.constraint.get(), choice.output}));
  return sampler_.pick(pick, pick_);
}

TokenId TokenPicker::token_to_accept(ActiveRequest& request, const PickInput& input) {
  const Choice& choice = request.choice(input.choice);
  sample::PickRequest pick = request_for(request.rules, input);
  pick.n_logprobs = -1;
  if (!input.found || !sampler_.finish(pick, *input.found, pick_)) {
    const auto logits = hooked_row(request.rules, input);
    const auto mask = mask_for({choice.constraint.get(), choice.output});
    if (!logits || !mask) return kNoToken;
    pick.logits = *logits;
    pick.mask = *mask;
    if (!sampler_.pick(pick, pick_)) return kNoToken;
  }
  if (pick_.token == choice.output.opening()) return kNoToken;
  std::optional<size_t> stop_index;
  const bool is_end = end_of(request.rules, pick_.token, choice.output.is_in_scope(), stop_index).has_value();
  return is_end ? kNoToken : pick_.token;
}

Result<RankedRow> TokenPicker::rank(const ActiveRequest& request, const PickInput& input, OutputView output) {
  RankedRow row;
  sample::PickRequest pick = request_for(request.rules, input);
  CANDOR_ASSIGN(pick.logits, hooked_row(request.rules, input));
  if (request.rules.explains) {
    row.explanation.images = image_attention(request, input.attention);
    explainer_.begin(row.explanation, pick.history, request.rules.chain.bans);
    pick.observer = &explainer_;
  }
  CANDOR_ASSIGN(pick.mask, mask_for(output));
  const int32_t width = request.beams->width();
  int32_t n_wanted = width;
  std::optional<size_t> stop_index;
  const auto ends = [&](TokenId token) {
    return end_of(request.rules, token, output.text.is_in_scope(), stop_index).has_value();
  };
  ranked_.clear();
  CANDOR_TRY(sampler_.rank(pick, ranked_, pick_, [&](TokenId token) { return ends(token) || --n_wanted > 0; }));
  if (pick.logprobs_of == sample::LogprobsOf::kChain) sampler_.narrow(pick, width > 1 ? pick.logits.size() : 1, pick_);
  for (const TokenLogprob& ranked : ranked_) {
    row.best.push_back({ranked.token, ranked.logprob, sampler_.logprob_of(pick, ranked.token), ends(ranked.token)});
  }
  row.top = pick_.top;
  return row;
}

Result<std::optional<FinishReason>> TokenPicker::accept(TokenId token, OutputText& text,
                                                        constrain::MaskedConstraint* constraint,
                                                        text::StopResult& shown) const {
  const bool opens_reasoning = token != kNoToken && token == text.opening();
  const bool is_constrained = constraint != nullptr && !text.is_reasoning() && !opens_reasoning;
  if (is_constrained) CANDOR_TRY(constraint->accept(token));
  shown = text.push(token);
  if (shown.hit) return FinishReason::kStopString;
  if (is_constrained && constraint->must_end()) return FinishReason::kStopEos;
  return std::nullopt;
}

// A wrong prediction is forgotten.
void TokenPicker::check_prediction(const ActiveRequest& request, const PickInput& input, Choice& choice,
                                   TokenEvent& event) {
  const auto i = static_cast<size_t>(choice.n_made);
  if (i >= choice.predicted.size() || choice.predicted[i] == event.token) return;
  const TokenId token = choice.predicted[i];
  const bool is_weighed = request.rules.n_logprobs >= 0 && sampler_.score(input.logits.get(), token, 0, predicted_);
  if (is_weighed) event.predicted = TokenLogprob{token, predicted_.logprob};
  choice.predicted.clear();
}

std::optional<FinishReason> TokenPicker::add_token(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  Choice& choice = request.choice(input.choice);
  event.token = pick_.token;
  if (request.rules.n_logprobs >= 0) {
    event.logprob = TokenLogprob{pick_.token, pick_.logprob};
    event.top_logprobs = pick_.top;
  }
  if (!choice.predicted.empty()) check_prediction(request, input, choice, event);
  ++request.summary.usage.completion_tokens;
  ++choice.n_made;
  return end_of(request.rules, event.token, choice.output.is_in_scope(), event.stop_index);
}

std::optional<FinishReason> TokenPicker::end_of(const ChoiceRules& rules, TokenId token, bool is_in_scope,
                                                std::optional<size_t>& stop_index) const {
  const auto& stop_ids = rules.stop_ids;
  if (const auto it = std::ranges::find(stop_ids, token); it != stop_ids.end() && is_in_scope) {
    stop_index = static_cast<size_t>(it - stop_ids.begin());
    return FinishReason::kStopId;
  }
  const bool is_end = std::ranges::binary_search(tokenizer_.end_tokens(), token);
  return is_end && !rules.ignore_eos ? std::optional(FinishReason::kStopEos) : std::nullopt;
}

}  // namespace candor::engine
