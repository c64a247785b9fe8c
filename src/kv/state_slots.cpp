#include "kv/state_slots.h"

#include <utility>

#include "base/error.h"

namespace candor::kv {

void StateSlots::plan(StateTable& table, int32_t n_tokens) {
  if (n_slots() == 0) return;
  const std::optional<Allocation> slot = pool_.allocate();
  CANDOR_CHECK(slot.has_value());
  table.coming.push_back({n_tokens, slot->block});
}

void StateSlots::settle(StateTable& table, int32_t n_tokens) {
  if (n_slots() == 0) return;
  let_go(table.now);
  for (StateAt& state : table.coming) {
    if (state.n_tokens == n_tokens && table.now == kNoState) {
      table.now = std::exchange(state.slot, kNoState);
    } else {
      let_go(state.slot);
    }
  }
  table.coming.clear();
  CANDOR_CHECK(table.now != kNoState);
}

void StateSlots::fork(const StateTable& table, StateTable& child) {
  child.now = table.now;
  if (child.now != kNoState) pool_.retain(child.now);
}

void StateSlots::release(StateTable& table) {
  let_go(table.now);
  for (StateAt& state : table.coming) let_go(state.slot);
  table.coming.clear();
}

void StateSlots::let_go(StateId& slot) {
  if (slot != kNoState) pool_.release(std::exchange(slot, kNoState));
}

}  // namespace candor::kv
