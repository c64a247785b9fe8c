#include "engine/step/chooser.h"

#include <cstddef>

#include "base/ids.h"

namespace candor::engine {

Chooser::Chooser(const ChooserParts& parts, RequestTable& requests, Faults& faults, const obs::Clock& clock,
                 int32_t max_rows)
    : parts_(parts),
      requests_(requests),
      faults_(faults),
      clock_(clock),
      choices_(parts, max_rows),
      beams_(parts, clock) {
  outcomes_.reserve(static_cast<size_t>(max_rows));
}

void Chooser::begin(ActiveRequest& request) {
  if (request.beams) BeamRunner::begin(request);
}

// What is not asked comes to the host as a row.
void Chooser::ask(const sched::StepPlan& plan, const StepResult& result) noexcept {
  try {
    for (const sched::PlannedSlice& slice : plan.slices) {
      ActiveRequest& request = requests_.of(slice.sequence->id);
      choices_.ask_prompt(request, slice, result);
      if (slice.n_out > 0 && !request.beams) choices_.ask(request, slice);
    }
  } catch (...) {
    faults_.count();
    parts_.asks.begin();
  }
}

std::span<const sched::Outcome> Chooser::choose(const sched::StepPlan& plan, const StepResult& result) {
  ready_ns_ = result.ready_ns;
  outcomes_.clear();
  choices_.begin_step();
  for (const sched::PlannedSlice& slice : plan.slices) {
    if (slice.n_out == 0 && slice.n_shown == 0) continue;
    ActiveRequest& request = requests_.of(slice.sequence->id);
    sched::Outcome outcome{slice.sequence->id, {}, false};
    faults_.contain(request, [&] {
      choices_.show_prompt(request, slice, result);
      if (slice.n_out == 0) return;
      outcome = request.beams ? beams_.choose(request, slice, result) : choices_.choose(request, slice, result);
    });
    if (slice.n_out > 0) outcomes_.push_back(outcome);
  }
  return outcomes_;
}

void Chooser::branch() {
  parts_.texts.end_others();
  choices_.fork_choices(faults_);
  beams_.advance(faults_, ready_ns_);
  parts_.masks.send();
}

void Chooser::choose_kept() {
  if (!parts_.masks.has_kept()) return;
  parts_.masks.allow_no_waiting();
  ready_ns_ = clock_.now_ns();
  parts_.masks.retry([&](SequenceId sequence) {
    ActiveRequest& request = requests_.of(sequence);
    bool is_chosen = true;
    faults_.contain(request, [&] {
      is_chosen = request.beams ? beams_.choose_kept(request, sequence, ready_ns_)
                                : choices_.choose_kept(request, sequence, ready_ns_);
    });
    return is_chosen;
  });
  branch();
}

void Chooser::forget_step() noexcept {
  parts_.texts.forget();
  choices_.forget_step();
  beams_.forget_step();
}

}  // namespace candor::engine
