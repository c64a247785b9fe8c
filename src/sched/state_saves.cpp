#include "sched/state_saves.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/checked.h"

namespace candor::sched {
namespace {

// Tokens that a template may write otherwise at the end of a prompt: "<|im_start|>assistant\n<think>\n" and the like.
constexpr int32_t kUnsureTokens = 8;
// Borders spread over a prompt.
constexpr int32_t kMostSpread = 4;

}  // namespace

void StateSaves::plan(const RowSharing& rows) {
  if (state_->options.n_states == 0) return;
  const auto& running = state_->sequences.running();
  n_others_ = 0;
  for (size_t i = 0; i < running.size(); ++i) {
    state_->blocks.states().drop_coming(running[i]->table.state);
    if (rows.of(i).n_rows > 0) n_others_ += 1 + rows.of(i).n_draft;
  }
  for (size_t i = 0; i < running.size(); ++i) {
    if (rows.of(i).n_rows > 0) plan(*running[i], rows.of(i));
  }
}

void StateSaves::plan(Sequence& sequence, RowShare share) {
  kv::StateSlots& states = state_->blocks.states();
  kv::StateTable& table = sequence.table.state;
  const int32_t step = state_->options.block_tokens;
  const int32_t end = sequence.n_computed + share.n_rows;
  for (int32_t border = (sequence.n_computed / step + 1) * step; border < end; border += step) {
    const kv::Keep keep = keep_at(sequence, border);
    if (keep != kv::Keep::kNot) states.plan_if_spare(table, border, keep, n_others_);
  }
  for (int32_t n = end; n <= end + share.n_draft; ++n) {
    states.plan(table, n, keep_at(sequence, n));
    --n_others_;
  }
}

kv::Keep StateSaves::keep_at(const Sequence& sequence, int32_t n_tokens) const {
  if (n_tokens % state_->options.block_tokens != 0 || !state_->may_be_shared(sequence)) return kv::Keep::kNot;
  return keep_at_border(sequence, n_tokens);
}

kv::Keep StateSaves::keep_at_border(const Sequence& sequence, int32_t border) const {
  const int32_t step = state_->options.block_tokens;
  const int32_t n_given = sequence.n_given;
  const int32_t last = (n_given - 1) / step * step;
  if (border > last) return kv::Keep::kNewest;
  if (border == last || border == sequence.table.n_known) return kv::Keep::kLast;
  if (std::ranges::any_of(sequence.turns, [&](int32_t n) { return n / step * step == border; })) return kv::Keep::kLast;
  if (border == last - step && n_given - last <= kUnsureTokens) return kv::Keep::kLast;
  const int32_t n_least = ceil_div(std::max(n_given / step, 1), kMostSpread);
  const auto n_apart = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(n_least)));
  return border % (n_apart * step) == 0 ? kv::Keep::kSpread : kv::Keep::kNot;
}

}  // namespace candor::sched
