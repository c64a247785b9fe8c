#include "sched/progress.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/error.h"

namespace candor::sched {

// The accepted drafts have their K/V already; what was computed for the others is forgotten.
void Progress::settle(Sequence& sequence, const PlannedSlice& slice, std::span<const TokenId> tokens) {
  const size_t n_accepted = tokens.empty() ? 0 : tokens.size() - 1;
  CANDOR_CHECK(n_accepted <= static_cast<size_t>(slice.n_draft));
  CANDOR_CHECK(std::ranges::equal(tokens.first(n_accepted), std::span(sequence.draft).first(n_accepted)));
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(n_accepted));
  sequence.draft.clear();
  advance(sequence, slice.n_rows - slice.n_draft + static_cast<int32_t>(n_accepted));
  if (slice.n_draft > 0) state_->blocks.truncate(sequence.table, sequence.n_tokens());
  state_->shares.charge(sequence.share_key, static_cast<int64_t>(tokens.size()));
  sequence.awaits_token = tokens.empty();
  if (!tokens.empty()) accept(sequence, tokens.back());
}

void Progress::advance(Sequence& sequence, int32_t n_rows) {
  sequence.n_computed += n_rows;
  sequence.shown_begin = std::min(std::max(sequence.shown_begin, sequence.n_computed), sequence.shown_end);
  const SchedulerOptions& options = state_->options;
  if (state_->may_be_shared(sequence)) {
    state_->blocks.publish(sequence.key, sequence.keyed(), sequence.n_computed, sequence.table);
  }
  state_->blocks.settle_states(sequence.table, sequence.n_computed);
  if (options.window_tokens > 0 && options.use_kv_cache) {
    state_->blocks.drop_before(sequence.table, sequence.n_computed + 1 - options.window_tokens);
  }
}

void Progress::accept(Sequence& sequence, TokenId token) {
  CANDOR_CHECK(!is_full(sequence));
  sequence.awaits_token = false;
  sequence.tokens.push_back(token);
  if (sequence.n_tokens() > state_->options.n_ctx) crop(sequence);
  if (!state_->options.use_kv_cache) sequence.n_computed = 0;
}

// Every position moves, so that nothing that was computed can stay.
void Progress::crop(Sequence& sequence) {
  const int32_t n_dropped = sequence.n_tokens() - state_->options.n_ctx;
  sequence.tokens.erase(sequence.tokens.begin(), sequence.tokens.begin() + n_dropped);
  sequence.n_cropped += n_dropped;
  state_->blocks.release(sequence.table);
  sequence.n_computed = 0;
}

}  // namespace candor::sched
