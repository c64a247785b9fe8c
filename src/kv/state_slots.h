#pragma once
// Who holds which slot of recurrent states: integers only, the memory itself belongs to a backend::KvStore. A slot that
// is held is never written again, so that sequences share one until each has gone on. One engine thread owns it.
//
// A checkpoint is a state that is kept with the K/V block whose last token it stands behind, for whoever begins with
// the tokens up to there. It has no slot of its own kind: what nobody holds is kept until a slot is wanted, those of
// Keep::kSpread first, then those used longest ago. A block that is forgotten takes its checkpoint with it.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/block_pool.h"

namespace candor::kv {

// Whether a state stays behind, where it stands at the end of a block.
enum class Keep : uint8_t {
  kNot,
  kSpread,  // as long as no slot is wanted
  kLast,    // until it is the one used longest ago
  kNewest,  // so too, instead of the sequence's one before of this kind, if nobody found that
};

// The state behind so many tokens.
struct StateAt {
  int32_t n_tokens = 0;
  StateId slot = kNoState;
  Keep keep = Keep::kNot;
};

// One that was made once; its slot may have gone to others since.
struct CheckpointRef {
  StateId slot = kNoState;
  int64_t id = 0;
};

// Of one sequence.
struct StateTable {
  StateId now = kNoState;         // behind its computed tokens
  std::vector<StateAt> coming{};  // what the step that is planned will write, ascending
  CheckpointRef newest{};         // its last one of Keep::kNewest
};

class StateSlots {
 public:
  // n_slots 0: there are no recurrent layers, and everything here does nothing. n_blocks: that may have a checkpoint.
  explicit StateSlots(int32_t n_slots, int32_t n_blocks = 0);

  // The step will write the state behind n_tokens. REQUIRES: a slot is to be had.
  void plan(StateTable& table, int32_t n_tokens, Keep keep = Keep::kNot);
  // So too, where more than n_others slots are to be had for it.
  void plan_if_spare(StateTable& table, int32_t n_tokens, Keep keep, int32_t n_others);
  // It was computed: the state behind n_tokens is the sequence's, the others that were planned are not.
  void settle(StateTable& table, int32_t n_tokens);
  // What was planned is not the sequence's.
  void drop_coming(StateTable& table);
  // `child`, which is empty, begins where the sequence is.
  void fork(const StateTable& table, StateTable& child);
  void release(StateTable& table);

  // Between the step and settle(): one of the coming states stays behind with the block that ends there. REQUIRES: it
  // is to be kept, and the block can be found by its tokens.
  void keep(StateTable& table, const StateAt& state, BlockId block);
  bool has_checkpoint(BlockId block) const { return n_slots() > 0 && slot_of(block) != kNoState; }
  // The table, which is empty, begins at the block's checkpoint.
  void begin_at(StateTable& table, BlockId block);
  // The block has other content from now on, or none.
  void forget(BlockId block);

  int32_t n_slots() const { return pool_.n_blocks(); }
  int32_t n_used() const { return pool_.n_used(); }
  int32_t n_checkpoints() const { return n_checkpoints_; }

 private:
  struct Checkpoint {
    BlockId block = kNoBlock;  // kNoBlock: the slot has none
    int64_t id = 0;            // never used again
    bool was_found = false;
  };

  StateId& slot_of(BlockId block) { return slots_[static_cast<size_t>(block)]; }
  StateId slot_of(BlockId block) const { return slots_[static_cast<size_t>(block)]; }
  Checkpoint& checkpoint(StateId slot) { return checkpoints_[static_cast<size_t>(slot)]; }
  void let_go(StateId& slot);
  void promote(StateId slot);
  void unlink(StateId slot);
  void drop_unless_found(CheckpointRef& ref);

  BlockPool pool_;
  std::vector<Checkpoint> checkpoints_;  // [n_slots]
  std::vector<StateId> slots_;           // [n_blocks]; kNoState: the block has no checkpoint
  int64_t n_made_ = 0;                   // so far
  int32_t n_checkpoints_ = 0;
};

}  // namespace candor::kv
