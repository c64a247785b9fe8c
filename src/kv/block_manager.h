#pragma once
// Manages the K/V blocks of sequences: which sequence holds which blocks, which blocks are shared (prefix cache,
// forks), and when a shared block must be copied before it is written. A BlockTable is one sequence's list of blocks;
// only the manager changes it. Integers only; one engine thread owns a manager.
//
// The block size is backend::kBlockTokens (src/backend/op_specs.h). A full block that was published to the prefix index
// is never written again. With recurrent layers, a match ends at the newest block that has a checkpoint
// (state_slots.h).
//
// Blocks are given back by src/sched: release() by Scheduler::let_go (the sequence ends), Admission::preempt_last and
// try_admit (no room after all) and Progress::crop; truncate() (rejected drafts) and drop_before() (attention window)
// by Progress in progress.cpp.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/block_pool.h"
#include "kv/prefix_index.h"
#include "kv/state_slots.h"

namespace candor::kv {

struct BlockTable {
  std::vector<BlockId> blocks;  // block j holds positions [j*B, (j+1)*B); kNoBlock once nobody looks at them any more
  int32_t n_published = 0;      // leading blocks that are in the prefix index
  int32_t n_dropped = 0;        // leading blocks that were given back
  int32_t n_known = 0;          // leading tokens that match() knew, those without a state behind them included
  EntryId last_entry = kNoEntry;
  PrefixDigest last_digest{};  // of that entry
  StateTable state{};  // of recurrent layers
};

// Before the step: copy the first n_tokens positions of src to dst.
struct BlockCopy {
  BlockId src = kNoBlock;
  BlockId dst = kNoBlock;
  int32_t n_tokens = 0;
};

// An indexed block whose content is about to be overwritten. The memory still holds it, and its state.
struct LostBlock {
  BlockId block = kNoBlock;
  StateId state = kNoState;  // its checkpoint's slot
  PrefixDigest digest{};
  PrefixDigest parent{};
  PrefixKey key{};
  std::vector<TokenId> tokens{};
};

class BlockManager {
 public:
  // n_states: slots of recurrent states. REQUIRES: n_blocks >= 0, block_tokens > 0.
  BlockManager(int32_t n_blocks, int32_t block_tokens, PrefixHash hash = hash_prefix, int32_t n_states = 0);

  // Takes the published blocks that hold the beginning of `tokens`, as many whole blocks as match, and of recurrent
  // layers the state behind them; returns the number of tokens that they hold. REQUIRES: the table is empty.
  int32_t match(const PrefixKey& key, std::span<const TokenId> tokens, BlockTable& table);
  // How many more blocks `n_tokens` positions need. match() first makes it smaller.
  int32_t n_missing(const BlockTable& table, int32_t n_tokens) const;
  // Appends blocks until the table holds n_tokens positions. False, with nothing changed, where the pool lacks them.
  bool grow(BlockTable& table, int32_t n_tokens);
  // Makes the block of `position` writable: a block that others hold or may find is replaced by one of our own, and
  // the copy that is needed comes back. `failed` is set when the pool lacks the block. REQUIRES: the table holds the
  // position.
  std::optional<BlockCopy> make_writable(BlockTable& table, int32_t position, bool& failed);
  // Offers every whole block below n_tokens to others. Where an equal block is already there, ours is exchanged for it.
  void publish(const PrefixKey& key, std::span<const TokenId> tokens, int32_t n_tokens, BlockTable& table);
  // The table goes on with a block whose content comes from elsewhere: the one that is indexed already, or a new one,
  // which is indexed at once and into which the caller brings the content (and the state, where with_state) before any
  // step. nullopt where the pool lacks one. REQUIRES: all blocks of the table are published.
  struct Adopted {
    BlockId block = kNoBlock;
    bool is_new = false;
    StateId state = kNoState;  // the slot of a new checkpoint
  };
  std::optional<Adopted> adopt(const PrefixKey& key, std::span<const TokenId> tokens, bool with_state,
                               BlockTable& table);
  // From now on, blocks that are taken although they were indexed are listed, until clear_lost().
  void list_lost() { lists_lost_ = true; }
  std::span<const LostBlock> lost() const { return std::span(lost_).first(n_lost_); }
  void clear_lost() { n_lost_ = 0; }
  // Of any indexed block.
  std::optional<PrefixIndex::Content> content_of(BlockId block) const { return index_.content_of(block); }
  // The step was computed, and the first n_tokens are the sequence's: their state is its own, and those that were to be
  // kept stay behind with their blocks, if they are published.
  void settle_states(BlockTable& table, int32_t n_tokens);
  // `child`, which is empty, becomes a second owner of everything in `table`.
  void fork(const BlockTable& table, BlockTable& child);
  // Gives back the blocks that hold no position below n_tokens. REQUIRES: what goes was not published.
  void truncate(BlockTable& table, int32_t n_tokens);
  // Gives back the blocks that hold only positions below `position`: no window reaches them any more.
  void drop_before(BlockTable& table, int32_t position);
  // Gives everything back, last block first, so that beginnings outlive their continuations.
  void release(BlockTable& table);

  StateSlots& states() { return states_; }
  const StateSlots& states() const { return states_; }
  const BlockPool& pool() const { return pool_; }
  int32_t block_tokens() const { return block_tokens_; }
  int32_t n_entries() const { return index_.n_entries(); }

 private:
  void note_lost(BlockId block);
  BlockId take();  // REQUIRES: pool_.n_available() > 0
  void release_block(BlockId& block);

  // Constant after construction.
  int32_t block_tokens_;
  // Engine thread only.
  BlockPool pool_;
  PrefixIndex index_;
  StateSlots states_;
  bool lists_lost_ = false;
  std::vector<LostBlock> lost_;  // the first n_lost_ are in use
  size_t n_lost_ = 0;
};

}  // namespace candor::kv
