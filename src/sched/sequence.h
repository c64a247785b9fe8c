#pragma once
// One sequence of tokens as the scheduler sees it: ids, counts and blocks; never text, logits or tensors. Owned by the
// Scheduler; the engine thread reads it between two steps and between plan() and commit().
//
// Tokens [0, n_computed) have their K/V in the blocks; the others are pending. One pending token: the sequence decodes.
// More: it reads. None: it is paused, keeping its place and blocks, until Scheduler::append() gives it a token.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "backend/step_batch.h"
#include "base/ids.h"
#include "candor/request.h"
#include "kv/block_manager.h"
#include "kv/prefix_index.h"

namespace candor::sched {

// Tokens of a prompt whose rows begin with vectors: an image's. What a prefix cache compares of them is not the token,
// which all images share, but a number below 0 that stands for this row of this image alone.
struct ImageRows {
  int32_t first = 0;  // token
  int32_t n_rows = 0;
  TokenId first_key = 0;       // of its first row; each next row has the next lower one
  bool is_seen_whole = false;  // its rows see one another, so that one step computes them
  // > 0: its rows stand at positions of a grid, row by row, where models turn by several (StepBatch::axes), and what
  // follows is as far behind its first as the grid's longer side.
  int32_t grid_cols = 0;

  int32_t end() const { return first + n_rows; }
  TokenId key_of(int32_t token) const { return first_key - (token - first); }
  // Positions that it takes fewer than it has rows.
  int32_t n_saved() const { return grid_cols == 0 ? 0 : n_rows - std::max(grid_cols, n_rows / grid_cols); }
};

struct SequenceSpec {
  SequenceId id = 0;
  std::vector<TokenId> prompt{};
  kv::PrefixKey key{};
  OnContextFull on_full = OnContextFull::kStop;
  // Tokens dropped from the front before it came here: position 0 of `prompt` is this position of the whole text.
  int64_t n_cropped = 0;
  int32_t priority = 0;       // higher is sooner
  uint64_t share_key = 0;     // whose share of the engine it counts to
  int32_t n_places = 1;       // running places taken at admission, so that its forks run beside it from the start
  bool shows_prompt = false;  // results of rows inside the prompt are wanted (prompt logprobs, mean hidden state)
  int32_t first_shown = 0;    // of these rows; those before it may come from the cache
  int32_t end_shown = std::numeric_limits<int32_t>::max();    // none from here on
  int32_t second_text = std::numeric_limits<int32_t>::max();  // backend::SeqSlice
  std::vector<backend::AdapterUse> adapters{};
  std::vector<ImageRows> images{};  // ascending; disjoint. REQUIRES: none with OnContextFull::kCrop
  std::array<int32_t, 2> turns{};   // tokens of the prompt up to which others are likely to begin alike; 0: none
};

struct Sequence {
  SequenceId id = 0;
  std::vector<TokenId> tokens{};  // prompt, then what was accepted; without what was cropped
  std::vector<TokenId> draft{};   // drafts of what follows; they live for one step
  kv::PrefixKey key{};
  OnContextFull on_full = OnContextFull::kStop;
  kv::BlockTable table{};
  int32_t n_computed = 0;  // leading tokens whose K/V is in the blocks
  int32_t n_given = 0;     // tokens known when it was admitted; what follows was generated
  std::array<int32_t, 2> turns{};
  int32_t shown_begin = 0;  // [shown_begin, shown_end): tokens of the prompt whose rows are still to be shown
  int32_t shown_end = 0;
  int32_t second_text = std::numeric_limits<int32_t>::max();
  std::vector<backend::AdapterUse> adapters{};
  std::vector<ImageRows> images{};
  std::vector<TokenId> keys{};  // of the first tokens, where there are images; keyed() completes them
  bool is_running = false;      // holds blocks
  // Its turn.
  int32_t rank = 0;       // the priority, raised by waiting
  int64_t order = 0;      // of arrival; a fork has its parent's
  int64_t queued_at = 0;  // the plan since which it waits
  uint64_t share_key = 0;
  int32_t n_spare_places = 0;  // kept for its forks
  // Totals, for the request's usage.
  int64_t n_cropped = 0;
  int64_t n_rows = 0;  // rows computed for it
  int32_t n_preemptions = 0;
  int32_t n_cached = 0;  // tokens found in the prefix index when it was first admitted
  bool was_admitted = false;
  bool awaits_token = false;  // it is paused; preempted meanwhile, it is not computed again before it goes on

  int32_t n_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t n_pending() const { return n_tokens() - n_computed; }
  // Of the rows before token `end` that are not computed, those to be shown.
  int32_t rows_to_show(int32_t end) const {
    return std::max(0, std::min(end, shown_end) - std::max(n_computed, shown_begin));
  }
  // The tokens as a prefix cache compares them.
  std::span<const TokenId> keyed() {
    if (images.empty()) return tokens;
    keys.insert(keys.end(), tokens.begin() + static_cast<std::ptrdiff_t>(keys.size()), tokens.end());
    return keys;
  }
  bool has_grids() const {
    return std::ranges::any_of(images, [](const ImageRows& image) { return image.grid_cols > 0; });
  }
  // Its positions in time, height and width (Wang et al., "Qwen2-VL", 2024).
  std::array<int32_t, 3> axes_of(int32_t token) const {
    int32_t position = token;
    for (const ImageRows& image : images) {
      if (image.first > token) break;
      if (token >= image.end()) {
        position -= image.n_saved();
      } else if (image.grid_cols > 0) {
        const int32_t i = token - image.first;
        const int32_t begin = position - i;
        return {begin, begin + i / image.grid_cols, begin + i % image.grid_cols};
      }
    }
    return {position, position, position};
  }
  // The image that the step which computes `token` computes whole; nullptr: none.
  const ImageRows* whole_image_at(int32_t token) const {
    const auto holds = [token](const ImageRows& image) {
      return image.is_seen_whole && image.first <= token && token < image.end();
    };
    const auto found = std::ranges::find_if(images, holds);
    return found == images.end() ? nullptr : &*found;
  }
  // Where the next token stands in the whole text, counted with what was cropped: the position of its random words.
  uint64_t next_position() const { return static_cast<uint64_t>(n_cropped) + tokens.size(); }
};

}  // namespace candor::sched
