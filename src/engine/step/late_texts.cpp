#include "engine/step/late_texts.h"

#include <algorithm>
#include <utility>

namespace candor::engine {

bool LateTexts::may_wait(ActiveRequest& request, const PickInput& input) const {
  const Choice& choice = request.choice(input.choice);
  const bool is_last = !input.has_room || choice.n_made + 1 == request.rules.max_tokens;
  return is_on_ && choice.constraint == nullptr && !is_last;
}

void LateTexts::add(ActiveRequest& request, const PickInput& input) {
  const PickInput kept{.choice = input.choice, .has_room = input.has_room, .now_ns = input.now_ns};
  waiting_.push_back({&request, kept, outbox_.n_events() - 1});
}

bool LateTexts::is_stopped(const Waiting& waiting) {
  return picker_.add_text(*waiting.request, waiting.input, outbox_.event(waiting.event)).reason.has_value();
}

void LateTexts::hold(const Waiting& waiting) {
  held_.push_back({waiting.request, outbox_.take(waiting.event)});
}

void LateTexts::end(ActiveRequest& request, TokenEvent& event) {
  const SequenceId id = request.sequence_of(event.choice);
  endings_.end_choice(request, event, FinishReason::kStopString);
  const sched::Sequence* sequence = scheduler_.find(id);
  if (sequence == nullptr) return;
  endings_.count_usage(request, *sequence, 0);
  scheduler_.remove(id);
}

void LateTexts::finish_behind() noexcept {
  for (const Waiting& waiting : waiting_) {
    faults_.contain(*waiting.request, [&] {
      if (is_stopped(waiting)) hold(waiting);
    });
  }
  waiting_.clear();
}

void LateTexts::finish() noexcept {
  for (const Waiting& waiting : waiting_) {
    faults_.contain(*waiting.request, [&] {
      if (is_stopped(waiting)) end(*waiting.request, outbox_.event(waiting.event));
    });
  }
  waiting_.clear();
}

bool LateTexts::take_ended(ActiveRequest& request, int32_t choice) {
  const auto held = std::ranges::find_if(
      held_, [&](const Held& one) { return one.request == &request && one.event.choice == choice; });
  if (held == held_.end()) return false;
  TokenEvent& event = outbox_.add(request, choice);
  event = std::move(held->event);
  held_.erase(held);
  endings_.end_choice(request, event, FinishReason::kStopString);
  return true;
}

void LateTexts::end_others() noexcept {
  for (Held& held : held_) {
    faults_.contain(*held.request, [&] {
      TokenEvent& event = outbox_.add(*held.request, held.event.choice);
      event = std::move(held.event);
      end(*held.request, event);
    });
  }
  held_.clear();
}

void LateTexts::forget() noexcept {
  finish_behind();
  held_.clear();
}

}  // namespace candor::engine
