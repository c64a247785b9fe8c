#pragma once
// One sequence of tokens as the scheduler sees it: ids, counts and blocks; never text, logits or tensors. Owned by the
// Scheduler; the engine thread reads it between plan() and commit().

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/block_manager.h"

namespace candor::sched {

enum class OnFull : uint8_t { kStop, kCrop };

struct SequenceSpec {
  SequenceId id = 0;
  std::vector<TokenId> prompt{};
  kv::PrefixKey key{};
  OnFull on_full = OnFull::kStop;
  // Tokens dropped from the front before it came here: position 0 of `prompt` is this position of the whole text.
  int64_t n_cropped = 0;
};

struct Sequence {
  SequenceId id = 0;
  std::vector<TokenId> tokens{};  // prompt, then what was accepted; without what was cropped
  kv::PrefixKey key{};
  OnFull on_full = OnFull::kStop;
  kv::BlockTable table{};
  int32_t n_computed = 0;   // leading tokens whose K/V is in the blocks
  bool is_running = false;  // holds blocks
  // Totals, for the request's usage.
  int64_t n_cropped = 0;
  int64_t n_rows = 0;  // rows computed for it
  int32_t n_preemptions = 0;
  int32_t n_cached = 0;  // tokens found in the prefix index when it was first admitted
  bool was_admitted = false;

  int32_t n_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t n_pending() const { return n_tokens() - n_computed; }
  // Where the next token stands in the whole text, counted with what was cropped: the position of its random words.
  uint64_t next_position() const { return static_cast<uint64_t>(n_cropped) + tokens.size(); }
};

}  // namespace candor::sched
