#include "sched/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

namespace candor::sched {

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options), blocks_(options.n_blocks, options.block_tokens, options.hash) {
  CANDOR_CHECK(options.n_ctx >= 1 && options.max_running >= 1);
  CANDOR_CHECK(int64_t{options.n_blocks} * options.block_tokens >= options.n_ctx);
  running_.reserve(static_cast<size_t>(options.max_running));
}

Expected<void> Scheduler::add(SequenceSpec spec) {
  if (spec.prompt.empty()) return fail(ErrorKind::kInvalidInput, "the prompt has no token");
  if (spec.prompt.size() > static_cast<size_t>(options_.n_ctx)) {
    return fail(ErrorKind::kContextLength, "the prompt has " + std::to_string(spec.prompt.size()) +
                                               " tokens, the context holds " + std::to_string(options_.n_ctx));
  }
  if (n_waiting() >= options_.max_queued) {
    return fail(ErrorKind::kOverloaded,
                "the queue is full: " + std::to_string(n_waiting()) + " requests are waiting; try again later");
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = spec.id;
  sequence->tokens = std::move(spec.prompt);
  sequence->key = std::move(spec.key);
  sequence->on_full = spec.on_full;
  sequence->n_cropped = spec.n_cropped;
  waiting_.push_back(std::move(sequence));
  return {};
}

bool Scheduler::remove(SequenceId id) {
  const auto is_it = [id](const Owned& sequence) { return sequence->id == id; };
  if (const auto it = std::ranges::find_if(running_, is_it); it != running_.end()) {
    blocks_.release((*it)->table);
    running_.erase(it);
    return true;
  }
  return std::erase_if(waiting_, is_it) > 0;
}

const Sequence* Scheduler::find(SequenceId id) const {
  for (const Owned& sequence : running_) {
    if (sequence->id == id) return sequence.get();
  }
  for (const Owned& sequence : waiting_) {
    if (sequence->id == id) return sequence.get();
  }
  return nullptr;
}

const StepPlan& Scheduler::plan(const StepBudget& budget) {
  CANDOR_DCHECK(budget.max_rows >= options_.max_running);
  plan_.copies.clear();
  plan_.n_preempted = 0;
  admit();
  share_rows(budget);
  reserve_blocks();
  build_batch();
  return plan_;
}

void Scheduler::admit() {
  while (!waiting_.empty() && n_running() < options_.max_running) {
    if (!try_admit(*waiting_.front())) return;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// Blocks for every known token, and one to spare for each that runs already, so that nobody is sent back at once.
bool Scheduler::try_admit(Sequence& sequence) {
  int32_t n_cached = 0;
  if (options_.use_prefix_index && options_.use_kv_cache) {
    const std::span<const TokenId> tokens = sequence.tokens;
    n_cached = blocks_.match(sequence.key, tokens.first(tokens.size() - 1), sequence.table);  // one is left to compute
  }
  const int32_t n_needed = blocks_.n_missing(sequence.table, sequence.n_tokens()) + n_running();
  if (n_needed > blocks_.pool().n_available() || !blocks_.grow(sequence.table, sequence.n_tokens())) {
    blocks_.release(sequence.table);
    return false;
  }
  sequence.n_computed = n_cached;
  sequence.is_running = true;
  if (!std::exchange(sequence.was_admitted, true)) sequence.n_cached = n_cached;
  return true;
}

void Scheduler::share_rows(const StepBudget& budget) {
  n_rows_.assign(running_.size(), 0);
  plan_.n_prefill_rows = 0;
  int32_t n_left = budget.max_rows;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->n_pending() != 1) continue;
    n_rows_[i] = 1;
    --n_left;
  }
  int32_t n_prefill_left = std::min(n_left, std::max(1, budget.max_prefill_rows));
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->n_pending() == 1) continue;
    n_rows_[i] = std::min(running_[i]->n_pending(), n_prefill_left);
    n_prefill_left -= n_rows_[i];
  }
}

// Oldest first, so that whoever must give blocks up was not served yet.
void Scheduler::reserve_blocks() {
  for (size_t i = 0; i < running_.size(); ++i) {
    while (i < running_.size() && !reserve(i)) preempt_youngest();
  }
}

bool Scheduler::reserve(size_t i) {
  Sequence& sequence = *running_[i];
  const int32_t end = sequence.n_computed + n_rows_[i];
  if (!blocks_.grow(sequence.table, end)) return false;
  for (int32_t position = sequence.n_computed; position < end;) {
    bool failed = false;
    const auto copy = blocks_.make_writable(sequence.table, position, failed);
    if (failed) return false;
    if (copy && copy->n_tokens > 0) plan_.copies.push_back(*copy);
    position = (position / options_.block_tokens + 1) * options_.block_tokens;
  }
  return true;
}

void Scheduler::preempt_youngest() {
  Owned sequence = std::move(running_.back());
  running_.pop_back();
  n_rows_.pop_back();
  blocks_.release(sequence->table);
  sequence->n_computed = 0;
  sequence->is_running = false;
  ++sequence->n_preemptions;
  ++plan_.n_preempted;
  waiting_.push_front(std::move(sequence));
}

void Scheduler::build_batch() {
  plan_.slices.clear();
  plan_.tokens.clear();
  plan_.positions.clear();
  plan_.seqs.clear();
  plan_.out_rows.clear();
  for (size_t i = 0; i < running_.size(); ++i) {
    if (n_rows_[i] > 0) append_slice(*running_[i], n_rows_[i]);
  }
  append_blocks();
}

void Scheduler::append_slice(Sequence& sequence, int32_t n_rows) {
  const int32_t first_row = static_cast<int32_t>(plan_.tokens.size());
  const int32_t n_past = sequence.n_computed;
  for (int32_t position = n_past; position < n_past + n_rows; ++position) {
    plan_.tokens.push_back(sequence.tokens[static_cast<size_t>(position)]);
    plan_.positions.push_back(position);
  }
  PlannedSlice slice{.sequence = &sequence, .first_row = first_row, .n_rows = n_rows};
  if (n_rows == sequence.n_pending()) {
    slice.out_row = static_cast<int32_t>(plan_.out_rows.size());
    plan_.out_rows.push_back(first_row + n_rows - 1);
  }
  if (sequence.n_pending() > 1) plan_.n_prefill_rows += n_rows;
  plan_.slices.push_back(slice);
  plan_.seqs.push_back({first_row, n_rows, n_past});
}

void Scheduler::append_blocks() {
  plan_.max_blocks = 0;
  for (const PlannedSlice& slice : plan_.slices) {
    plan_.max_blocks = std::max(plan_.max_blocks, static_cast<int32_t>(slice.sequence->table.blocks.size()));
  }
  plan_.block_table.assign(plan_.slices.size() * static_cast<size_t>(plan_.max_blocks), kNoBlock);
  for (size_t s = 0; s < plan_.slices.size(); ++s) {
    const auto& blocks = plan_.slices[s].sequence->table.blocks;
    std::ranges::copy(
        blocks, plan_.block_table.begin() + static_cast<std::ptrdiff_t>(s * static_cast<size_t>(plan_.max_blocks)));
  }
}

void Scheduler::commit(std::span<const Outcome> outcomes) {
  size_t next = 0;
  for (const PlannedSlice& slice : plan_.slices) {
    // The plan points at sequences of running_, all of which are ours to change.
    const auto it = std::ranges::find_if(running_, [&](const Owned& s) { return s.get() == slice.sequence; });
    CANDOR_CHECK(it != running_.end());
    Sequence& sequence = **it;
    advance(sequence, slice);
    if (slice.out_row < 0) continue;
    CANDOR_CHECK(next < outcomes.size() && outcomes[next].sequence == sequence.id);
    const Outcome& outcome = outcomes[next++];
    if (outcome.is_finished) {
      blocks_.release(sequence.table);
      running_.erase(it);
    } else {
      accept(sequence, outcome.token);
    }
  }
  CANDOR_CHECK(next == outcomes.size());
  plan_.slices.clear();
}

void Scheduler::advance(Sequence& sequence, const PlannedSlice& slice) {
  sequence.n_computed += slice.n_rows;
  sequence.n_rows += slice.n_rows;
  const bool may_be_shared = options_.use_prefix_index && options_.use_kv_cache && sequence.n_cropped == 0;
  if (may_be_shared) blocks_.publish(sequence.key, sequence.tokens, sequence.n_computed, sequence.table);
}

void Scheduler::accept(Sequence& sequence, TokenId token) {
  CANDOR_CHECK(!is_full(sequence));
  sequence.tokens.push_back(token);
  if (sequence.n_tokens() > options_.n_ctx) crop(sequence);
  if (!options_.use_kv_cache) sequence.n_computed = 0;
}

// Every position moves, so that nothing that was computed can stay.
void Scheduler::crop(Sequence& sequence) {
  const int32_t n_dropped = sequence.n_tokens() - options_.n_ctx;
  sequence.tokens.erase(sequence.tokens.begin(), sequence.tokens.begin() + n_dropped);
  sequence.n_cropped += n_dropped;
  blocks_.release(sequence.table);
  sequence.n_computed = 0;
}

}  // namespace candor::sched
