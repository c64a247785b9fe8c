#pragma once
// Who holds which slot of recurrent states: integers only, the memory itself belongs to a backend::KvStore. A slot that
// is held is never written again, so that sequences share one until each has gone on. One engine thread owns it.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/block_pool.h"

namespace candor::kv {

// The state behind so many tokens.
struct StateAt {
  int32_t n_tokens = 0;
  StateId slot = kNoState;
};

// Of one sequence.
struct StateTable {
  StateId now = kNoState;         // behind its computed tokens
  std::vector<StateAt> coming{};  // what the step that is planned will write, ascending
};

class StateSlots {
 public:
  // n_slots 0: there are no recurrent layers, and everything here does nothing.
  explicit StateSlots(int32_t n_slots) : pool_(n_slots) {}

  // The step will write the state behind n_tokens. REQUIRES: a slot is free.
  void plan(StateTable& table, int32_t n_tokens);
  // It was computed: the state behind n_tokens is the sequence's, the others that were planned are not.
  void settle(StateTable& table, int32_t n_tokens);
  // `child`, which is empty, begins where the sequence is.
  void fork(const StateTable& table, StateTable& child);
  void release(StateTable& table);

  int32_t n_slots() const { return pool_.n_blocks(); }
  int32_t n_used() const { return pool_.n_used(); }

 private:
  void let_go(StateId& slot);

  BlockPool pool_;
};

}  // namespace candor::kv
