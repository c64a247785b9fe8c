#include "engine/speculator.h"

#include <algorithm>

#include "draft/ngram.h"

namespace candor::engine {

Speculator::Speculator(const sched::CostModel& costs, int32_t max_guesses) : costs_(costs), max_guesses_(max_guesses) {
  guesses_.reserve(static_cast<size_t>(draft::kMaxGuesses));
}

int32_t Speculator::length_for(const Choice& choice, int32_t most, int32_t n_other_rows) const {
  return choice.draft_length.choose(
      most, [&](int32_t n_rows) { return static_cast<double>(costs_.step_ns(n_other_rows + n_rows, 0)); });
}

void Speculator::propose(sched::Scheduler& scheduler, RequestTable& requests) {
  if (max_guesses_ == 0) return;
  decoding_.clear();
  for (int32_t i = 0; i < scheduler.n_running(); ++i) {
    if (scheduler.running(i).n_pending() == 1) decoding_.push_back(scheduler.running(i).id);
  }
  int32_t n_left = max_guesses_;
  int32_t n_rows = static_cast<int32_t>(decoding_.size());
  for (const SequenceId id : decoding_) {
    ActiveRequest& request = requests.of(id);
    if (!request.rules.may_speculate) continue;
    Choice& choice = request.choice(static_cast<int32_t>(id - request.id));
    const int32_t n = length_for(choice, std::min(n_left, draft::kMaxGuesses), n_rows - 1);
    guesses_.clear();
    draft::guess_by_ngram(scheduler.find(id)->tokens, n, {}, guesses_);
    if (guesses_.empty()) continue;
    scheduler.set_draft(id, guesses_);
    n_left -= static_cast<int32_t>(guesses_.size());
    n_rows += static_cast<int32_t>(guesses_.size());
  }
}

}  // namespace candor::engine
