#include "engine/speculator.h"

#include <algorithm>

#include "draft/ngram.h"
#include "engine/memory_plan.h"

namespace candor::engine {
namespace {

double guess_ns(const LoadedModel& loaded) {
  return loaded.draft && loaded.options.costs ? loaded.options.costs->draft_ms * 1e6 : 0.0;
}

// A draft model reads the whole text before its first guess. It begins once that costs at most a fortieth of what the
// answer took so far, so that short answers do not pay for guesses that they never see.
constexpr double kLeastAnswer = 40.0;
constexpr double kRowsAtOnce = 16.0;  // read in about the time of one

}  // namespace

Speculator::Speculator(LoadedModel& loaded, const sched::CostModel& costs)
    : costs_(costs), guess_ns_(guess_ns(loaded)), max_guesses_(max_guesses(loaded.options)) {
  asks_.reserve(static_cast<size_t>(loaded.options.max_running));
  if (!loaded.draft) return;
  DraftModel& draft = *loaded.draft;
  drafter_ = std::make_unique<draft::ModelDrafter>(*loaded.backend, *draft.model, *draft.kv, draft.slots,
                                                   loaded.options.max_rows, loaded.n_vocab());
}

bool Speculator::may_begin(const Choice& choice, const sched::Sequence& sequence) const {
  const double reading_ns = guess_ns_ * (1.0 + static_cast<double>(sequence.n_tokens()) / kRowsAtOnce);
  const double answer_ns = static_cast<double>(choice.n_made * costs_.step_ns(1, 0));
  return choice.draft_length.has_begun() || answer_ns >= kLeastAnswer * reading_ns;
}

int32_t Speculator::length_for(const Choice& choice, int32_t most, int32_t n_other_rows) const {
  return choice.draft_length.choose(most, [&](int32_t n_rows) {
    return static_cast<double>(costs_.step_ns(n_other_rows + n_rows, 0)) + guess_ns_ * (n_rows - 1);
  });
}

void Speculator::find_decoding(const sched::Scheduler& scheduler) {
  decoding_.clear();
  for (int32_t i = 0; i < scheduler.n_running(); ++i) {
    if (scheduler.running(i).n_pending() == 1) decoding_.push_back(scheduler.running(i).id);
  }
}

draft::DraftRequest& Speculator::next_ask() {
  if (n_asks_ == asks_.size()) asks_.emplace_back();
  draft::DraftRequest& request = asks_[n_asks_++];
  request.guesses.clear();
  return request;
}

void Speculator::ask(const sched::Scheduler& scheduler, RequestTable& requests) {
  n_asks_ = 0;
  int32_t n_left = max_guesses_;
  int32_t n_rows = static_cast<int32_t>(decoding_.size());
  for (const SequenceId id : decoding_) {
    ActiveRequest& request = requests.of(id);
    if (!request.rules.may_speculate) continue;
    const int32_t index = static_cast<int32_t>(id - request.id);
    const Choice& choice = request.choice(index);
    const sched::Sequence& sequence = *scheduler.find(id);
    if (!may_begin(choice, sequence)) continue;
    const int32_t n = length_for(choice, std::min(n_left, draft::kMaxGuesses), n_rows - 1);
    if (n == 0) continue;
    draft::DraftRequest& asked = next_ask();
    asked.sequence = id;
    asked.text = sequence.tokens;
    asked.n_output = static_cast<size_t>(choice.n_made);
    asked.chain = &request.rules.chain;
    asked.key = {request.rules.seed, static_cast<uint32_t>(index), sequence.next_position()};
    asked.constraint = choice.output.is_reasoning() ? nullptr : choice.constraint.get();
    asked.n_guesses = n;
    if (drafter_ == nullptr) draft::guess_by_ngram(asked.text, n, {}, asked.guesses);
    const int32_t n_guessed = drafter_ == nullptr ? static_cast<int32_t>(asked.guesses.size()) : n;
    n_left -= n_guessed;
    n_rows += n_guessed;
  }
}

void Speculator::propose(sched::Scheduler& scheduler, RequestTable& requests) {
  if (max_guesses_ == 0) return;
  find_decoding(scheduler);
  ask(scheduler, requests);
  const auto asked = std::span(asks_).first(n_asks_);
  if (drafter_ != nullptr) drafter_->propose(asked);
  for (const draft::DraftRequest& request : asked) {
    if (!request.guesses.empty()) scheduler.set_draft(request.sequence, request.guesses);
  }
}

}  // namespace candor::engine
