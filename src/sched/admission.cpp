#include "sched/admission.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kv/block_manager.h"
#include "sched/scheduler_options.h"
#include "sched/sequence_pool.h"

namespace candor::sched {

void Admission::admit() {
  ++n_plans_;
  n_preempted_ = 0;
  admit_in_turn();
  admit_over_holders();
}

void Admission::admit_in_turn() {
  SequencePool& sequences = state_->sequences;
  while (sequences.n_waiting() > 0) {
    const size_t i = next_in_turn();
    if (i == sequences.waiting().size()) return;
    Sequence& sequence = *sequences.waiting()[i];
    const bool has_room = has_place_for(sequence) && try_admit(sequence);
    if (!has_room && !admit_over_lower_ranks(sequence)) return;
    sequences.add_running(
        sequences.take_waiting(i));  // preemption appends to those that wait, so that i is still right
  }
}

size_t Admission::next_in_turn() const {
  const auto& waiting = state_->sequences.waiting();
  size_t best = waiting.size();
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i]->awaits_token) continue;
    if (best == waiting.size() || is_before(*waiting[i], *waiting[best])) best = i;
  }
  return best;
}

void Admission::admit_over_holders() {
  const auto& running = state_->sequences.running();
  const auto computes = [](const SequencePool::Owned& sequence) { return sequence->n_pending() > 0; };
  const auto is_wanted = [&] { return next_in_turn() < state_->sequences.waiting().size(); };
  while (!running.empty() && std::ranges::none_of(running, computes) && is_wanted()) {
    preempt_last();
    admit_in_turn();
  }
}

bool Admission::is_before(const Sequence& a, const Sequence& b) const {
  if (const int32_t rank_a = rank_now(a), rank_b = rank_now(b); rank_a != rank_b) return rank_a > rank_b;
  if (a.was_admitted != b.was_admitted) return a.was_admitted;
  if (a.share_key != b.share_key && !a.was_admitted) {
    const int64_t served_a = state_->shares.served(a.share_key);
    const int64_t served_b = state_->shares.served(b.share_key);
    if (served_a != served_b) return served_a < served_b;
  }
  return a.order != b.order ? a.order < b.order : a.id < b.id;
}

int32_t Admission::rank_now(const Sequence& sequence) const {
  return sequence.rank + static_cast<int32_t>((n_plans_ - sequence.queued_at) / kStepsPerRank);
}

bool Admission::has_place_for(const Sequence& sequence) const {
  int32_t n_taken = state_->sequences.n_running();
  for (const SequencePool::Owned& running : state_->sequences.running()) n_taken += running->n_spare_places;
  return n_taken + 1 + sequence.n_spare_places <= state_->options.max_running;
}

// Blocks for every known token, and one to spare for each that runs already, so that nobody is sent back at once.
bool Admission::try_admit(Sequence& sequence) {
  kv::BlockManager& blocks = state_->blocks;
  int32_t n_cached = 0;
  if (state_->options.use_prefix_index && state_->options.use_kv_cache) {
    const bool is_shown = sequence.shown_begin < sequence.shown_end;
    const size_t most = is_shown ? static_cast<size_t>(sequence.shown_begin) : sequence.tokens.size() - 1;
    n_cached = blocks.match(sequence.key, sequence.keyed().first(most), sequence.table);
  }
  const int32_t n_needed = blocks.n_missing(sequence.table, sequence.n_tokens()) + state_->sequences.n_running();
  if (n_needed > blocks.pool().n_available() || !blocks.grow(sequence.table, sequence.n_tokens())) {
    blocks.release(sequence.table);
    return false;
  }
  sequence.n_computed = n_cached;
  sequence.n_given = sequence.n_tokens();
  sequence.is_running = true;
  sequence.rank = rank_now(sequence);
  if (!std::exchange(sequence.was_admitted, true)) sequence.n_cached = n_cached;
  return true;
}

// The last in turn are preempted, one by one, as long as they rank lower.
bool Admission::admit_over_lower_ranks(Sequence& sequence) {
  if (!can_gain(sequence)) return false;
  const auto& running = state_->sequences.running();
  while (!running.empty() && running.back()->rank < rank_now(sequence)) {
    preempt_last();
    if (has_place_for(sequence) && try_admit(sequence)) return true;
  }
  return false;
}

// Would it be admitted if all lower ranks were preempted? Shared blocks are counted as if they came free.
bool Admission::can_gain(const Sequence& sequence) const {
  int32_t n_places = state_->options.max_running - 1 - sequence.n_spare_places;
  const kv::BlockManager& blocks = state_->blocks;
  int32_t n_free = blocks.pool().n_available() - blocks.n_missing(sequence.table, sequence.n_tokens());
  bool has_lower = false;
  for (const SequencePool::Owned& running : state_->sequences.running()) {
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

void Admission::preempt_last() {
  SequencePool& sequences = state_->sequences;
  SequencePool::Owned sequence = sequences.take_running(sequences.running().size() - 1);
  state_->blocks.release(sequence->table);
  sequence->draft.clear();
  sequence->n_computed = 0;
  sequence->is_running = false;
  sequence->queued_at = n_plans_;
  ++sequence->n_preemptions;
  ++n_preempted_;
  sequences.add_waiting(std::move(sequence));
}

}  // namespace candor::sched
