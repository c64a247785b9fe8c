#include "engine/token_picker.h"

#include <algorithm>
#include <utility>

#include "engine/errors.h"

namespace candor::engine {
namespace {

TokenLogprob to_public(const sample::Logprob& logprob) {
  return {logprob.token, logprob.value};
}

}  // namespace

Picked TokenPicker::pick(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  if (auto chosen = choose(request, input, event); !chosen) {
    event.error = engine::to_public(std::move(chosen).error());
    return {.reason = FinishReason::kError};
  }
  Picked picked{.token = pick_.token, .reason = add_token(request, input, event)};
  Choice& choice = request.choice(input.choice);
  picked.gap_ns = request.watch.on_token(input.now_ns, choice.last_token_ns, !event.text.empty());
  choice.last_token_ns = input.now_ns;
  return picked;
}

Expected<void> TokenPicker::choose(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  const ChoiceRules& rules = request.rules;
  constrain::Constraint* constraint = request.choice(input.choice).constraint.get();
  sample::PickRequest pick{.logits = input.logits, .chain = rules.chain, .n_logprobs = rules.n_logprobs};
  pick.logprobs_of = rules.logprobs_of;
  pick.history = {input.text, static_cast<size_t>(request.choice(input.choice).n_made)};
  pick.key = {.seed = rules.seed, .choice = static_cast<uint32_t>(input.choice), .position = input.position};
  if (rules.explains) {
    TokenExplanation& explanation = event.explanation.emplace();
    explanation.was_drawn = !rules.chain.is_greedy();
    explanation.draw = static_cast<double>(sample::draw_of(pick.key));
    explanation.guess = input.guess;
    explainer_.begin(explanation);
    pick.observer = &explainer_;
  }
  if (constraint != nullptr) {
    CANDOR_TRY(constraint->mask(mask_));
    pick.mask = &mask_;
  }
  CANDOR_TRY(sampler_.pick(pick, pick_));
  if (constraint != nullptr) return constraint->accept(pick_.token);
  return {};
}

std::optional<FinishReason> TokenPicker::add_token(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  Choice& choice = request.choice(input.choice);
  event.token = pick_.token;
  if (request.rules.n_logprobs >= 0) {
    event.logprob = TokenLogprob{pick_.token, pick_.logprob};
    for (const sample::Logprob& logprob : pick_.top) event.top_logprobs.push_back(to_public(logprob));
  }
  ++request.summary.usage.completion_tokens;
  const int64_t n_made = ++choice.n_made;
  if (const auto ended = end_by_token(request, event)) return ended;
  text::StopResult shown = choice.output.push(pick_.token);
  event.text = std::move(shown.text);
  event.stop_index = shown.hit;
  if (event.stop_index) return FinishReason::kStopString;
  if (choice.constraint != nullptr && choice.constraint->must_end()) return FinishReason::kStopEos;
  if (n_made == request.rules.max_tokens) return FinishReason::kLength;
  return input.has_room ? std::nullopt : std::optional(FinishReason::kContextFull);
}

std::optional<FinishReason> TokenPicker::end_by_token(const ActiveRequest& request, TokenEvent& event) const {
  const auto& stop_ids = request.rules.stop_ids;
  if (const auto it = std::ranges::find(stop_ids, event.token); it != stop_ids.end()) {
    event.stop_index = static_cast<size_t>(it - stop_ids.begin());
    return FinishReason::kStopId;
  }
  const bool is_end = std::ranges::binary_search(tokenizer_.end_tokens(), event.token);
  return is_end && !request.rules.ignore_eos ? std::optional(FinishReason::kStopEos) : std::nullopt;
}

}  // namespace candor::engine
