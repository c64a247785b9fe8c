// StepLoop: sequences whose next mask is not there in time. Their row's logits are kept, they hold, and the token is
// chosen between two steps, as it would have been in its own.

#include <algorithm>

#include "engine/step/step_loop.h"

namespace candor::engine {

// Where masks are slow, so is accepting the token, but for the first. The worker does that, and what does not fit a step:
// then the same token is chosen again.
bool StepLoop::can_pick(ActiveRequest& request, const PickInput& input) {
  const Choice& choice = request.choice(input.choice);
  if (!has_mask(choice.constraint, choice.output)) return false;
  const bool accepts = OutputView{choice.constraint.get(), choice.output}.needs_mask() && choice.n_made > 0;
  if (!accepts || choice.constraint->is_ahead()) return true;
  if (!choice.constraint->is_slow() && accept_left_ns_ > 0) return true;
  const TokenId token = picker_.token_to_accept(request, input);
  if (token == kNoToken) return true;
  masks_.want_ahead(choice.constraint, token);
  return false;
}

bool StepLoop::has_mask(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text) {
  return !OutputView{constraint.get(), text}.needs_mask() || masks_.has(constraint);
}

void StepLoop::want_mask(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text) {
  if (OutputView{constraint.get(), text}.needs_mask()) masks_.want(constraint);
}

// A mask that could not be asked for is asked for again when it is needed.
void StepLoop::send_masks() {
  try {
    masks_.send();
  } catch (...) {
    metrics_.n_faults.add();
  }
}

void StepLoop::keep(SequenceId sequence, KeptRow& row, const PickInput& input) {
  row.logits.assign(input.logits.begin(), input.logits.end());
  row.guess = input.guess;
  if (std::ranges::find(kept_, sequence) == kept_.end()) kept_.push_back(sequence);
}

// Before a step is planned: whoever got its mask meanwhile takes part in it.
void StepLoop::pick_kept() {
  if (kept_.empty()) return;
  masks_.allow_waiting(0);
  token_time_ns_ = clock_.now_ns();
  std::erase_if(kept_, [&](SequenceId sequence) {
    ActiveRequest& request = requests_.of(sequence);
    bool is_done = true;
    contain(request, [&] {
      is_done = request.beams ? rank_kept_beam(request, sequence) : pick_kept_choice(request, sequence);
    });
    return is_done;
  });
  advance_beams();
  send_masks();
}

// False where the mask is not there yet.
bool StepLoop::pick_kept_choice(ActiveRequest& request, SequenceId sequence) {
  const int32_t index = static_cast<int32_t>(sequence - request.id);
  const Choice& choice = request.choice(index);
  const sched::Sequence& held = *scheduler_.find(sequence);
  PickInput input = of_choice(request, index, input_for(held, 0));
  input.logits = choice.kept.logits;
  input.guess = choice.kept.guess;
  if (!can_pick(request, input)) return false;
  const Picked picked = pick_row(request, input, outbox_.add(request, index));
  if (!picked.reason) {
    scheduler_.append(sequence, picked.token);
    return true;
  }
  count_usage(request, held, 0);
  scheduler_.remove(sequence);
  return true;
}

bool StepLoop::rank_kept_beam(ActiveRequest& request, SequenceId sequence) {
  const int32_t live = request.beams->live_of(sequence);
  const Beam& beam = request.beams->live[static_cast<size_t>(live)];
  if (!has_mask(beam.constraint, beam.text)) return false;
  PickInput input = input_for(*scheduler_.find(sequence), 0);
  input.logits = beam.kept.logits;
  rank_beam(request, live, input);
  return true;
}

}  // namespace candor::engine
