#include "kv/state_slots.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.h"

namespace candor::kv {

StateSlots::StateSlots(int32_t n_slots, int32_t n_blocks) : pool_(n_slots) {
  if (n_slots == 0) return;
  checkpoints_.resize(static_cast<size_t>(n_slots));
  slots_.resize(static_cast<size_t>(n_blocks), kNoState);
}

void StateSlots::plan(StateTable& table, int32_t n_tokens, Keep keep) {
  if (n_slots() == 0) return;
  const std::optional<Allocation> slot = pool_.allocate();
  CANDOR_CHECK(slot.has_value());
  if (slot->was_cached) unlink(slot->block);
  table.coming.push_back({n_tokens, slot->block, keep});
}

void StateSlots::plan_if_spare(StateTable& table, int32_t n_tokens, Keep keep, int32_t n_others) {
  const int32_t n_to_be_had = keep == Keep::kSpread ? pool_.n_spare() : pool_.n_available();
  if (n_to_be_had > n_others) plan(table, n_tokens, keep);
}

void StateSlots::settle(StateTable& table, int32_t n_tokens) {
  if (n_slots() == 0) return;
  let_go(table.now);
  for (StateAt& state : table.coming) {
    if (state.n_tokens == n_tokens && table.now == kNoState) table.now = std::exchange(state.slot, kNoState);
  }
  drop_coming(table);
  CANDOR_CHECK(table.now != kNoState);
}

void StateSlots::drop_coming(StateTable& table) {
  for (StateAt& state : table.coming) let_go(state.slot);
  table.coming.clear();
}

void StateSlots::fork(const StateTable& table, StateTable& child) {
  child.now = table.now;
  child.newest = table.newest;
  if (child.now != kNoState) pool_.retain(child.now);
}

void StateSlots::release(StateTable& table) {
  let_go(table.now);
  drop_coming(table);
  table.newest = {};
}

// Where two have read the same, the first one's state is as good.
void StateSlots::keep(StateTable& table, const StateAt& state, BlockId block) {
  if (state.keep == Keep::kNewest) drop_unless_found(table.newest);
  if (const StateId before = slot_of(block); before != kNoState) {
    if (state.keep != Keep::kSpread) promote(before);
    return;
  }
  slot_of(block) = state.slot;
  checkpoint(state.slot) = {block, ++n_made_, false};
  pool_.set_cacheable(state.slot, state.keep == Keep::kSpread);
  ++n_checkpoints_;
  if (state.keep == Keep::kNewest) table.newest = {state.slot, n_made_};
}

void StateSlots::begin_at(StateTable& table, BlockId block) {
  CANDOR_CHECK(table.now == kNoState && has_checkpoint(block));
  table.now = slot_of(block);
  promote(table.now);
  checkpoint(table.now).was_found = true;
  pool_.retain(table.now);
}

StateId StateSlots::adopt(BlockId block) {
  CANDOR_CHECK(!has_checkpoint(block));
  const std::optional<Allocation> slot = n_slots() > 0 ? pool_.allocate() : std::nullopt;
  if (!slot) return kNoState;
  if (slot->was_cached) unlink(slot->block);
  slot_of(block) = slot->block;
  checkpoint(slot->block) = {block, ++n_made_, false};
  pool_.set_cacheable(slot->block);
  pool_.release(slot->block);
  ++n_checkpoints_;
  return slot->block;
}

void StateSlots::forget(BlockId block) {
  if (has_checkpoint(block)) unlink(slot_of(block));
}

// Used again, and worth as much as any from now on.
void StateSlots::promote(StateId slot) {
  pool_.retain(slot);
  pool_.set_cacheable(slot);
  pool_.release(slot);
}

void StateSlots::unlink(StateId slot) {
  Checkpoint& gone = checkpoint(slot);
  slot_of(gone.block) = kNoState;
  gone = {};
  --n_checkpoints_;
  pool_.set_worthless(slot);
}

void StateSlots::drop_unless_found(CheckpointRef& ref) {
  const CheckpointRef dropped = std::exchange(ref, {});
  if (dropped.slot == kNoState) return;
  const Checkpoint& one = checkpoint(dropped.slot);
  if (one.id == dropped.id && !one.was_found) unlink(dropped.slot);
}

void StateSlots::let_go(StateId& slot) {
  if (slot != kNoState) pool_.release(std::exchange(slot, kNoState));
}

}  // namespace candor::kv
