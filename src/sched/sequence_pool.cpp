#include "sched/sequence_pool.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/checked.h"

namespace candor::sched {
namespace {

constexpr int32_t kMostSaves = 32;  // of a sequence in a step: drafts and a few borders of blocks

template <class T>
void make_room_for_one(std::vector<T>& items) {
  if (items.size() == items.capacity()) items.reserve(2 * items.size() + 1);
}

}  // namespace

SequencePool::SequencePool(const SchedulerOptions& options)
    : n_tokens_(static_cast<size_t>(options.n_ctx) + 1),
      n_blocks_(static_cast<size_t>(ceil_div(options.n_ctx, options.block_tokens))),
      n_states_(static_cast<size_t>(std::min(options.n_states, kMostSaves))) {
  const size_t n_places = static_cast<size_t>(options.max_running);
  running_.reserve(n_places + 1);
  spare_.reserve(2 * n_places);
}

Sequence* SequencePool::find(SequenceId id) const {
  for (const Owned& sequence : running_) {
    if (sequence->id == id) return sequence.get();
  }
  for (const Owned& sequence : waiting_) {
    if (sequence->id == id) return sequence.get();
  }
  return nullptr;
}

SequencePool::Owned SequencePool::blank() {
  if (!spare_.empty()) {
    Owned sequence = std::move(spare_.back());
    spare_.pop_back();
    return sequence;
  }
  Owned sequence = std::make_unique<Sequence>();
  sequence->tokens.reserve(n_tokens_);
  sequence->table.blocks.reserve(n_blocks_);
  sequence->table.state.coming.reserve(n_states_);
  return sequence;
}

void SequencePool::recycle(Owned sequence) {
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

void SequencePool::make_room() {
  make_room_for_one(waiting_);
  make_room_for_one(running_);
}

void SequencePool::add_running(Owned sequence) {
  const auto comes_after = [&](const Owned& other) {
    return other->rank != sequence->rank ? other->rank < sequence->rank : other->order > sequence->order;
  };
  running_.insert(std::ranges::find_if(running_, comes_after), std::move(sequence));
}

SequencePool::Owned SequencePool::take_waiting(size_t i) {
  Owned taken = std::move(waiting_[i]);
  std::swap(waiting_[i], waiting_.back());
  waiting_.pop_back();
  return taken;
}

SequencePool::Owned SequencePool::take_running(size_t i) {
  const auto it = running_.begin() + static_cast<std::ptrdiff_t>(i);
  Owned taken = std::move(*it);
  running_.erase(it);
  return taken;
}

}  // namespace candor::sched
