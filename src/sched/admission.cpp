// Scheduler: who runs, and who gives way.

#include <algorithm>
#include <utility>

#include "sched/scheduler.h"

namespace candor::sched {

void Scheduler::admit() {
  while (!waiting_.empty()) {
    const size_t i = next_in_turn();
    if (i == waiting_.size()) return;
    Sequence& sequence = *waiting_[i];
    const bool has_room = has_place_for(sequence) && try_admit(sequence);
    if (!has_room && !admit_over_lower_ranks(sequence)) return;
    // Preemption appends to waiting_, so that i still holds.
    Owned admitted = std::exchange(waiting_[i], nullptr);
    std::swap(waiting_[i], waiting_.back());
    waiting_.pop_back();
    insert_running(std::move(admitted));
  }
}

size_t Scheduler::next_in_turn() const {
  size_t best = waiting_.size();
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (waiting_[i]->awaits_token) continue;
    if (best == waiting_.size() || is_before(*waiting_[i], *waiting_[best])) best = i;
  }
  return best;
}

void Scheduler::admit_over_holders() {
  const auto computes = [](const Owned& sequence) { return sequence->n_pending() > 0; };
  while (!running_.empty() && std::ranges::none_of(running_, computes) && next_in_turn() < waiting_.size()) {
    preempt_last();
    admit();
  }
}

bool Scheduler::is_before(const Sequence& a, const Sequence& b) const {
  if (const int32_t rank_a = rank_now(a), rank_b = rank_now(b); rank_a != rank_b) return rank_a > rank_b;
  if (a.was_admitted != b.was_admitted) return a.was_admitted;
  if (a.share_key != b.share_key && !a.was_admitted) {
    const int64_t served_a = shares_.served(a.share_key);
    const int64_t served_b = shares_.served(b.share_key);
    if (served_a != served_b) return served_a < served_b;
  }
  return a.order != b.order ? a.order < b.order : a.id < b.id;
}

int32_t Scheduler::rank_now(const Sequence& sequence) const {
  return sequence.rank + static_cast<int32_t>((n_plans_ - sequence.queued_at) / kStepsPerRank);
}

bool Scheduler::has_place_for(const Sequence& sequence) const {
  int32_t n_taken = n_running();
  for (const Owned& running : running_) n_taken += running->n_spare_places;
  return n_taken + 1 + sequence.n_spare_places <= options_.max_running;
}

// Blocks for every known token, and one to spare for each that runs already, so that nobody is sent back at once.
bool Scheduler::try_admit(Sequence& sequence) {
  int32_t n_cached = 0;
  if (options_.use_prefix_index && options_.use_kv_cache) {
    const bool is_shown = sequence.shown_begin < sequence.shown_end;
    const size_t most = is_shown ? static_cast<size_t>(sequence.shown_begin) : sequence.tokens.size() - 1;
    n_cached = blocks_.match(sequence.key, std::span(sequence.tokens).first(most), sequence.table);
  }
  const int32_t n_needed = blocks_.n_missing(sequence.table, sequence.n_tokens()) + n_running();
  if (n_needed > blocks_.pool().n_available() || !blocks_.grow(sequence.table, sequence.n_tokens())) {
    blocks_.release(sequence.table);
    return false;
  }
  sequence.n_computed = n_cached;
  sequence.is_running = true;
  sequence.rank = rank_now(sequence);
  if (!std::exchange(sequence.was_admitted, true)) sequence.n_cached = n_cached;
  return true;
}

// The last in turn give way, one by one, as long as they rank lower.
bool Scheduler::admit_over_lower_ranks(Sequence& sequence) {
  if (!can_gain(sequence)) return false;
  while (!running_.empty() && running_.back()->rank < rank_now(sequence)) {
    preempt_last();
    if (has_place_for(sequence) && try_admit(sequence)) return true;
  }
  return false;
}

// Would it be admitted if all lower ranks gave way? Shared blocks are counted as if they came free.
bool Scheduler::can_gain(const Sequence& sequence) const {
  int32_t n_places = options_.max_running - 1 - sequence.n_spare_places;
  int32_t n_free = blocks_.pool().n_available() - blocks_.n_missing(sequence.table, sequence.n_tokens());
  bool has_lower = false;
  for (const Owned& running : running_) {
    if (running->rank < rank_now(sequence)) {
      n_free += static_cast<int32_t>(running->table.blocks.size());
      has_lower = true;
    } else {
      n_places -= 1 + running->n_spare_places;
      --n_free;  // one to spare for each that stays
    }
  }
  return has_lower && n_places >= 0 && n_free >= 0;
}

void Scheduler::preempt_last() {
  Owned sequence = std::move(running_.back());
  running_.pop_back();
  if (row_shares_.size() > running_.size()) row_shares_.pop_back();
  blocks_.release(sequence->table);
  sequence->draft.clear();
  sequence->n_computed = 0;
  sequence->is_running = false;
  sequence->queued_at = n_plans_;
  ++sequence->n_preemptions;
  ++plan_.n_preempted;
  waiting_.push_back(std::move(sequence));
}

}  // namespace candor::sched
