#include "sched/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"

namespace candor::sched {
namespace {

// For one more; what follows then takes no memory.
template <class T>
void make_room(std::vector<T>& items) {
  if (items.size() == items.capacity()) items.reserve(2 * items.size() + 1);
}

constexpr size_t kMostTableEntries = size_t{1} << 20;  // reserved for the plan's block table; it may grow beyond

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options), blocks_(options.n_blocks, options.block_tokens, options.hash) {
  CANDOR_CHECK(options.n_ctx >= 1 && options.max_running >= 1);
  CANDOR_CHECK(int64_t{options.n_blocks} * options.block_tokens >= options.n_ctx);
  const size_t n_places = static_cast<size_t>(options.max_running);
  const size_t n_blocks = static_cast<size_t>(ceil_div(options.n_ctx, options.block_tokens));
  running_.reserve(n_places + 1);
  spare_.reserve(2 * n_places);
  row_shares_.reserve(n_places + 1);
  readers_.reserve(n_places + 1);
  plan_.slices.reserve(n_places);
  plan_.seqs.reserve(n_places);
  plan_.block_table.reserve(std::min(n_places * n_blocks, kMostTableEntries));
}

Result<void> Scheduler::add(const SequenceSpec& spec) {
  if (spec.prompt.empty()) return fail(ErrorKind::kInvalidInput, "the prompt has no token");
  if (spec.prompt.size() > static_cast<size_t>(options_.n_ctx)) {
    return fail(ErrorKind::kContextLength, "the prompt has " + std::to_string(spec.prompt.size()) +
                                               " tokens, the context holds " + std::to_string(options_.n_ctx));
  }
  if (n_waiting() >= options_.max_queued) {
    return fail(ErrorKind::kOverloaded,
                "the queue is full: " + std::to_string(n_waiting()) + " requests are waiting; try again later");
  }
  Owned sequence = blank();
  sequence->id = spec.id;
  sequence->tokens.assign(spec.prompt.begin(), spec.prompt.end());
  sequence->key = spec.key;
  sequence->on_full = spec.on_full;
  sequence->n_cropped = spec.n_cropped;
  sequence->rank = spec.priority;
  sequence->order = n_arrived_++;
  sequence->queued_at = n_plans_;
  sequence->share_key = spec.share_key;
  sequence->shown_end = spec.shows_prompt ? sequence->n_tokens() - 1 : 0;
  sequence->n_spare_places = std::clamp(spec.n_places, 1, options_.max_running) - 1;
  make_room(waiting_);
  shares_.open(spec.share_key);
  waiting_.push_back(std::move(sequence));
  return {};
}

// A sequence without content whose vectors have their full size.
Scheduler::Owned Scheduler::blank() {
  if (!spare_.empty()) {
    Owned sequence = std::move(spare_.back());
    spare_.pop_back();
    return sequence;
  }
  Owned sequence = std::make_unique<Sequence>();
  sequence->tokens.reserve(static_cast<size_t>(options_.n_ctx) + 1);
  sequence->table.blocks.reserve(static_cast<size_t>(ceil_div(options_.n_ctx, options_.block_tokens)));
  return sequence;
}

// Takes back the blocks and the share; keeps the memory.
void Scheduler::recycle(Owned sequence) {
  blocks_.release(sequence->table);
  shares_.close(sequence->share_key);
  if (spare_.size() == spare_.capacity()) return;
  Sequence empty;
  empty.tokens = std::move(sequence->tokens);
  empty.draft = std::move(sequence->draft);
  empty.table = std::move(sequence->table);
  empty.key = std::move(sequence->key);
  empty.tokens.clear();
  empty.draft.clear();
  *sequence = std::move(empty);
  spare_.push_back(std::move(sequence));
}

bool Scheduler::remove(SequenceId id) {
  const auto is_it = [id](const Owned& sequence) { return sequence->id == id; };
  if (const auto it = std::ranges::find_if(running_, is_it); it != running_.end()) {
    leave(static_cast<size_t>(it - running_.begin()));
    return true;
  }
  const auto it = std::ranges::find_if(waiting_, is_it);
  if (it == waiting_.end()) return false;
  recycle(std::exchange(*it, std::move(waiting_.back())));
  waiting_.pop_back();
  return true;
}

void Scheduler::leave(size_t running_index) {
  const auto it = running_.begin() + static_cast<std::ptrdiff_t>(running_index);
  recycle(std::move(*it));
  running_.erase(it);
}

void Scheduler::fork(SequenceId parent_id, SequenceId child_id) {
  CANDOR_CHECK(find(child_id) == nullptr);
  Sequence* parent = find_mutable(parent_id);
  CANDOR_CHECK(parent != nullptr);
  Owned child = blank();
  child->id = child_id;
  child->tokens.assign(parent->tokens.begin(), parent->tokens.end());
  child->key = parent->key;
  child->on_full = parent->on_full;
  child->n_cropped = parent->n_cropped;
  child->rank = parent->rank;
  child->order = parent->order;
  child->queued_at = n_plans_;
  child->share_key = parent->share_key;
  child->was_admitted = parent->was_admitted;
  child->awaits_token = parent->awaits_token;
  child->table.blocks.reserve(parent->table.blocks.size());
  make_room(waiting_);
  make_room(running_);
  shares_.open(child->share_key);
  if (parent->n_spare_places > 0) --parent->n_spare_places;
  if (!parent->is_running || !has_place_for(*child)) {
    waiting_.push_back(std::move(child));
    return;
  }
  blocks_.fork(parent->table, child->table);
  child->n_computed = parent->n_computed;
  child->is_running = true;
  insert_running(std::move(child));
}

// Behind all of its rank and order.
void Scheduler::insert_running(Owned sequence) {
  const auto comes_after = [&](const Owned& other) {
    return other->rank != sequence->rank ? other->rank < sequence->rank : other->order > sequence->order;
  };
  running_.insert(std::ranges::find_if(running_, comes_after), std::move(sequence));
}

void Scheduler::append(SequenceId id, TokenId token) {
  Sequence* sequence = find_mutable(id);
  CANDOR_CHECK(sequence != nullptr);
  accept(*sequence, token);
}

void Scheduler::set_draft(SequenceId id, std::span<const TokenId> guesses) {
  Sequence* sequence = find_mutable(id);
  CANDOR_CHECK(sequence != nullptr);
  sequence->draft.assign(guesses.begin(), guesses.end());
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

Sequence* Scheduler::find_mutable(SequenceId id) {
  return const_cast<Sequence*>(std::as_const(*this).find(id));
}

void Scheduler::commit(std::span<const Outcome> outcomes) {
  size_t next = 0;
  size_t at = 0;  // slices stand in the order of running_
  for (const PlannedSlice& slice : plan_.slices) {
    while (at < running_.size() && running_[at].get() != slice.sequence) ++at;
    CANDOR_CHECK(at < running_.size());
    Sequence& sequence = *running_[at];
    sequence.n_rows += slice.n_rows;
    shares_.charge(sequence.share_key, slice.n_rows);
    if (slice.n_out == 0) {
      sequence.draft.clear();
      advance(sequence, slice.n_rows);
      continue;
    }
    CANDOR_CHECK(next < outcomes.size() && outcomes[next].sequence == sequence.id);
    const Outcome& outcome = outcomes[next++];
    if (outcome.is_finished) {
      advance(sequence, slice.n_rows - slice.n_draft);
      leave(at);
    } else {
      settle(sequence, slice, outcome.tokens);
    }
  }
  CANDOR_CHECK(next == outcomes.size());
  plan_.slices.clear();
}

// The accepted guesses have their K/V already; what was computed for the others is forgotten.
void Scheduler::settle(Sequence& sequence, const PlannedSlice& slice, std::span<const TokenId> tokens) {
  const size_t n_accepted = tokens.empty() ? 0 : tokens.size() - 1;
  CANDOR_CHECK(n_accepted <= static_cast<size_t>(slice.n_draft));
  CANDOR_CHECK(std::ranges::equal(tokens.first(n_accepted), std::span(sequence.draft).first(n_accepted)));
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(n_accepted));
  sequence.draft.clear();
  advance(sequence, slice.n_rows - slice.n_draft + static_cast<int32_t>(n_accepted));
  if (slice.n_draft > 0) blocks_.truncate(sequence.table, sequence.n_tokens());
  shares_.charge(sequence.share_key, static_cast<int64_t>(tokens.size()));
  sequence.awaits_token = tokens.empty();
  if (!tokens.empty()) accept(sequence, tokens.back());
}

void Scheduler::advance(Sequence& sequence, int32_t n_rows) {
  sequence.n_computed += n_rows;
  sequence.shown_begin = std::min(std::max(sequence.shown_begin, sequence.n_computed), sequence.shown_end);
  const bool may_be_shared = options_.use_prefix_index && options_.use_kv_cache && sequence.n_cropped == 0;
  if (may_be_shared) blocks_.publish(sequence.key, sequence.tokens, sequence.n_computed, sequence.table);
  if (options_.window_tokens > 0 && options_.use_kv_cache) {
    blocks_.drop_before(sequence.table, sequence.n_computed + 1 - options_.window_tokens);
  }
}

void Scheduler::accept(Sequence& sequence, TokenId token) {
  CANDOR_CHECK(!is_full(sequence));
  sequence.awaits_token = false;
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
