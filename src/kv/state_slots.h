#pragma once
// Tracks which sequence holds which slot of recurrent states (the counterpart of K/V blocks for state-space and
// delta-rule layers). Integers only; the memory belongs to a backend::KvStore. A held slot is never written again, so
// forked sequences share one until each has gone on. One engine thread owns it.
//
// A checkpoint is a state that is kept together with a K/V block: the state behind the block's last token. A sequence
// with the same tokens up to there begins with it. A checkpoint that no sequence uses keeps its slot until one is
// wanted: those of Keep::kSpread go first, then the least recently used. When a block is forgotten, so is its
// checkpoint.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/block_pool.h"

namespace candor::kv {

// Whether a state at the end of a block is kept as a checkpoint.
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

// A checkpoint that was made once; its slot may have been given to others since.
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
  // The slot of its checkpoint; kNoState where it has none.
  StateId checkpoint_of(BlockId block) const { return n_slots() > 0 ? slot_of(block) : kNoState; }
  // A checkpoint of the block, into whose slot the caller brings the state; kNoState where no slot is to be had.
  // REQUIRES: the block has none.
  StateId adopt(BlockId block);
  // The block has other content from now on, or none.
  void forget(BlockId block);

  int32_t n_slots() const { return pool_.n_blocks(); }
  int32_t n_used() const { return pool_.n_used(); }
  int32_t n_checkpoints() const { return n_checkpoints_; }

 private:
  struct Checkpoint {
    BlockId block = kNoBlock;  // kNoBlock: the slot has none
    int64_t id = 0;            // never reused
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
