#include "sched/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"

namespace candor::sched {
namespace {

// What a prefix cache compares of a prompt with images.
std::vector<TokenId> keys_of(const SequenceSpec& spec) {
  std::vector<TokenId> keys(spec.prompt);
  for (const ImageRows& image : spec.images) {
    for (int32_t token = image.first; token < image.end(); ++token) {
      keys[static_cast<size_t>(token)] = image.key_of(token);
    }
  }
  return keys;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : state_(std::make_unique<SchedulerState>(options)),
      admission_(*state_),
      rows_(*state_),
      saves_(*state_),
      progress_(*state_) {
  CANDOR_CHECK(options.n_ctx >= 1 && options.max_running >= 1);
  CANDOR_CHECK(int64_t{options.n_blocks} * options.block_tokens >= options.n_ctx);
  CANDOR_CHECK(options.n_states == 0 || options.n_states >= 2 * options.max_running);
  plan_.sees_ahead = options.reads_whole;
  plan_.reserve(static_cast<size_t>(options.max_running),
                static_cast<size_t>(ceil_div(options.n_ctx, options.block_tokens)),
                static_cast<size_t>(options.n_states));
}

Result<void> Scheduler::add(const SequenceSpec& spec) {
  if (spec.prompt.empty()) return fail(ErrorKind::kInvalidInput, "the prompt has no token");
  if (spec.prompt.size() > static_cast<size_t>(state_->options.n_ctx)) {
    return fail(ErrorKind::kContextLength, "the prompt has " + std::to_string(spec.prompt.size()) +
                                               " tokens, the context holds " + std::to_string(state_->options.n_ctx));
  }
  if (n_waiting() >= state_->options.max_queued) {
    return fail(ErrorKind::kOverloaded,
                "the queue is full: " + std::to_string(n_waiting()) + " requests are waiting; try again later");
  }
  SequencePool::Owned sequence = state_->sequences.blank();
  sequence->id = spec.id;
  sequence->tokens.assign(spec.prompt.begin(), spec.prompt.end());
  sequence->key = spec.key;
  sequence->on_full = spec.on_full;
  sequence->n_cropped = spec.n_cropped;
  sequence->rank = spec.priority;
  sequence->order = n_arrived_++;
  sequence->queued_at = admission_.n_plans();
  sequence->share_key = spec.share_key;
  sequence->turns = spec.turns;
  sequence->shown_begin = spec.shows_prompt ? spec.first_shown : 0;
  sequence->shown_end = spec.shows_prompt ? std::min(sequence->n_tokens() - 1, spec.end_shown) : 0;
  sequence->second_text = spec.second_text;
  sequence->adapters.assign(spec.adapters.begin(), spec.adapters.end());
  sequence->images.assign(spec.images.begin(), spec.images.end());
  if (!spec.images.empty()) sequence->keys = keys_of(spec);
  sequence->n_spare_places = std::clamp(spec.n_places, 1, state_->options.max_running) - 1;
  state_->sequences.make_room();
  state_->shares.open(spec.share_key);
  state_->sequences.add_waiting(std::move(sequence));
  return {};
}

// Takes back the blocks and the share.
void Scheduler::let_go(SequencePool::Owned sequence) {
  state_->blocks.release(sequence->table);
  state_->shares.close(sequence->share_key);
  state_->sequences.recycle(std::move(sequence));
}

bool Scheduler::remove(SequenceId id) {
  SequencePool& sequences = state_->sequences;
  const auto is_it = [id](const SequencePool::Owned& sequence) { return sequence->id == id; };
  const auto& running = sequences.running();
  if (const auto it = std::ranges::find_if(running, is_it); it != running.end()) {
    let_go(sequences.take_running(static_cast<size_t>(it - running.begin())));
    return true;
  }
  const auto& waiting = sequences.waiting();
  const auto it = std::ranges::find_if(waiting, is_it);
  if (it == waiting.end()) return false;
  let_go(sequences.take_waiting(static_cast<size_t>(it - waiting.begin())));
  return true;
}

void Scheduler::fork(SequenceId parent_id, SequenceId child_id) {
  CANDOR_CHECK(find(child_id) == nullptr);
  Sequence* parent = state_->sequences.find(parent_id);
  CANDOR_CHECK(parent != nullptr);
  SequencePool::Owned child = state_->sequences.blank();
  child->id = child_id;
  child->tokens.assign(parent->tokens.begin(), parent->tokens.end());
  child->key = parent->key;
  child->on_full = parent->on_full;
  child->n_cropped = parent->n_cropped;
  child->second_text = parent->second_text;
  child->adapters.assign(parent->adapters.begin(), parent->adapters.end());
  child->images.assign(parent->images.begin(), parent->images.end());
  child->keys.assign(parent->keys.begin(), parent->keys.end());
  child->rank = parent->rank;
  child->order = parent->order;
  child->queued_at = admission_.n_plans();
  child->share_key = parent->share_key;
  child->was_admitted = parent->was_admitted;
  child->awaits_token = parent->awaits_token;
  child->table.blocks.reserve(parent->table.blocks.size());
  state_->sequences.make_room();
  state_->shares.open(child->share_key);
  if (parent->n_spare_places > 0) --parent->n_spare_places;
  if (!parent->is_running || !admission_.has_place_for(*child)) {
    state_->sequences.add_waiting(std::move(child));
    return;
  }
  state_->blocks.fork(parent->table, child->table);
  child->n_computed = parent->n_computed;
  child->n_given = parent->n_given;
  child->is_running = true;
  state_->sequences.add_running(std::move(child));
}

void Scheduler::append(SequenceId id, TokenId token) {
  Sequence* sequence = state_->sequences.find(id);
  CANDOR_CHECK(sequence != nullptr);
  progress_.accept(*sequence, token);
}

void Scheduler::set_draft(SequenceId id, std::span<const TokenId> drafts) {
  Sequence* sequence = state_->sequences.find(id);
  CANDOR_CHECK(sequence != nullptr);
  sequence->draft.assign(drafts.begin(), drafts.end());
}

const StepPlan& Scheduler::plan(const StepBudget& budget) {
  CANDOR_DCHECK(budget.max_rows >= state_->options.max_running);
  plan_.copies.clear();
  admission_.admit();
  rows_.share(budget);
  reserve_blocks();
  build_plan();
  return plan_;
}

// In turn, so that a sequence that must give its blocks up was not served yet. Drafts go before sequences do.
void Scheduler::reserve_blocks() {
  const auto& running = state_->sequences.running();
  for (size_t i = 0; i < running.size(); ++i) {
    while (i < running.size() && !reserve(*running[i], rows_.of(i))) {
      if (rows_.drop_draft(i)) continue;
      admission_.preempt_last();
      rows_.drop_last();
    }
  }
}

bool Scheduler::reserve(Sequence& sequence, RowShare share) {
  kv::BlockManager& blocks = state_->blocks;
  const int32_t end = sequence.n_computed + share.n_rows + share.n_draft;
  if (!blocks.grow(sequence.table, end)) return false;
  for (int32_t position = sequence.n_computed; position < end;) {
    bool failed = false;
    const auto copy = blocks.make_writable(sequence.table, position, failed);
    if (failed) return false;
    if (copy && copy->n_tokens > 0) plan_.copies.push_back(*copy);
    position = (position / state_->options.block_tokens + 1) * state_->options.block_tokens;
  }
  return true;
}

void Scheduler::build_plan() {
  const auto& running = state_->sequences.running();
  plan_.clear();
  plan_.n_preempted = admission_.n_preempted();
  plan_.expected_ns = state_->options.costs.step_ns(rows_.work());
  saves_.plan(rows_);
  for (size_t i = 0; i < running.size(); ++i) {
    if (rows_.of(i).n_rows > 0) plan_.append(*running[i], rows_.of(i));
  }
  plan_.append_axes();
  plan_.append_blocks();
}

void Scheduler::commit(std::span<const Outcome> outcomes) {
  const auto& running = state_->sequences.running();
  size_t next = 0;
  size_t at = 0;  // slices stand in the order of those that run
  for (const PlannedSlice& slice : plan_.slices) {
    while (at < running.size() && running[at].get() != slice.sequence) ++at;
    CANDOR_CHECK(at < running.size());
    Sequence& sequence = *running[at];
    sequence.n_rows += slice.n_rows;
    state_->shares.charge(sequence.share_key, slice.n_rows);
    if (slice.n_out == 0) {
      sequence.draft.clear();
      progress_.advance(sequence, slice.n_rows);
      continue;
    }
    CANDOR_CHECK(next < outcomes.size() && outcomes[next].sequence == sequence.id);
    const Outcome& outcome = outcomes[next++];
    if (outcome.is_finished) {
      progress_.advance(sequence, slice.n_rows - slice.n_draft);
      let_go(state_->sequences.take_running(at));
    } else {
      progress_.settle(sequence, slice, outcome.tokens);
    }
  }
  CANDOR_CHECK(next == outcomes.size());
  plan_.slices.clear();
}

}  // namespace candor::sched
