// Scheduler: the rows of one step, their blocks, and the arrays that go down.

#include <algorithm>
#include <limits>
#include <utility>

#include "sched/scheduler.h"

namespace candor::sched {
namespace {

// Where the cost of decoding alone is the measure, the step may take this much of it: below twice, so that what the
// model of costs does not see and other programs add still fits.
constexpr int64_t kStretchPercent = 175;
// Rows that a prompt gets in any case: the weights stream for the decoding rows anyway, and nobody starves.
constexpr int32_t kLeastPromptRows = 4;

}  // namespace

const StepPlan& Scheduler::plan(const StepBudget& budget) {
  CANDOR_DCHECK(budget.max_rows >= options_.max_running);
  ++n_plans_;
  plan_.copies.clear();
  plan_.n_preempted = 0;
  row_shares_.clear();
  admit();
  admit_over_holders();
  share_rows(budget);
  reserve_blocks();
  build_batch();
  return plan_;
}

void Scheduler::share_rows(const StepBudget& budget) {
  row_shares_.assign(running_.size(), {});
  work_ = {};
  n_shown_left_ = std::max(budget.max_shown_rows, 1);
  share_decoding();
  share_drafts(budget);
  share_prompts(budget);
}

void Scheduler::share_decoding() {
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->n_pending() != 1) continue;
    give_rows(i, 1);
    ++work_.n_out_rows;
  }
}

void Scheduler::share_drafts(const StepBudget& budget) {
  int64_t n_out_left = std::max(budget.max_out_rows, options_.max_running) - n_running();
  for (size_t i = 0; i < running_.size(); ++i) {
    const Sequence& sequence = *running_[i];
    if (sequence.n_pending() != 1 || sequence.draft.empty()) continue;
    const int64_t n = std::min({static_cast<int64_t>(sequence.draft.size()), n_out_left, budget.max_rows - work_.n_rows,
                                int64_t{options_.n_ctx} - sequence.n_tokens()});
    if (n <= 0) continue;
    work_.add_rows(sequence.n_tokens(), n);
    work_.n_out_rows += n;
    n_out_left -= n;
    row_shares_[i].n_draft = static_cast<int32_t>(n);
  }
}

// The first in turn at least half of what fits, then the shortest of the others, then the first again.
void Scheduler::share_prompts(const StepBudget& budget) {
  readers_.clear();
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->n_pending() > 1) readers_.push_back(i);
  }
  if (readers_.empty()) return;
  const auto served = [this](size_t i) { return shares_.served(running_[i]->share_key); };
  const auto comes_before = [&](size_t a, size_t b) {
    if (running_[a]->rank != running_[b]->rank) return running_[a]->rank > running_[b]->rank;
    return served(a) != served(b) ? served(a) < served(b) : a < b;
  };
  std::ranges::swap(readers_.front(), *std::ranges::min_element(readers_, comes_before));
  std::sort(readers_.begin() + 1, readers_.end(), [&](size_t a, size_t b) {
    const int32_t n_a = running_[a]->n_pending();
    const int32_t n_b = running_[b]->n_pending();
    return n_a != n_b ? n_a < n_b : a < b;
  });
  const int64_t alone_ns = options_.costs.step_ns(work_);
  limit_ns_ = work_.n_rows == 0           ? std::numeric_limits<int64_t>::max()
              : budget.decode_step_ns > 0 ? budget.decode_step_ns
                                          : alone_ns * kStretchPercent / 100;
  const int64_t end = std::min<int64_t>(budget.max_rows, work_.n_rows + std::max(1, budget.max_prefill_rows));
  const auto n_left = [&] { return static_cast<int32_t>(end - work_.n_rows); };
  const size_t first = readers_.front();
  const int32_t n_first = std::max(rows_that_fit(first, n_left()), std::min(kLeastPromptRows, n_left()));
  const int32_t n_at_once = std::min(running_[first]->n_pending(), readers_.size() == 1 ? n_first : (n_first + 1) / 2);
  give_rows(first, rows_that_show(first, n_at_once));
  for (size_t r = 1; r < readers_.size(); ++r) give_rows(readers_[r], rows_that_fit(readers_[r], n_left()));
  give_rows(first, rows_that_fit(first, n_left()));
}

// The most rows of sequence i, up to n_most, that keep the step within its limit.
int32_t Scheduler::rows_that_fit(size_t i, int32_t n_most) const {
  const Sequence& sequence = *running_[i];
  const int32_t n_given = row_shares_[i].n_rows;
  const int32_t n_past = sequence.n_computed + n_given;
  int32_t low = 0;
  int32_t high = rows_that_show(i, std::max(0, std::min(n_most, sequence.n_pending() - n_given)));
  while (low < high) {
    const int32_t n = low + (high - low + 1) / 2;
    StepWork work = work_;
    if (n_given == 0) work.begin_sequence(n_past);
    work.add_rows(n_past, n);
    const bool fits = options_.costs.step_ns(work) <= limit_ns_;
    (fits ? low : high) = fits ? n : n - 1;
  }
  return low;
}

// Of the rows before token `end` that are not computed, those to be shown.
int32_t Scheduler::rows_to_show(const Sequence& sequence, int32_t end) const {
  return std::max(0, std::min(end, sequence.shown_end) - std::max(sequence.n_computed, sequence.shown_begin));
}

// As many further rows of sequence i, up to n_most, as there is room for what they show.
int32_t Scheduler::rows_that_show(size_t i, int32_t n_most) const {
  const Sequence& sequence = *running_[i];
  const int32_t begin = sequence.n_computed + row_shares_[i].n_rows;
  const int64_t n_shown = rows_to_show(sequence, begin + n_most) - rows_to_show(sequence, begin);
  if (n_shown <= n_shown_left_) return n_most;
  return std::max(0, sequence.shown_begin - begin) + static_cast<int32_t>(n_shown_left_);
}

void Scheduler::give_rows(size_t i, int32_t n_rows) {
  const int32_t begin = running_[i]->n_computed + row_shares_[i].n_rows;
  n_shown_left_ -= rows_to_show(*running_[i], begin + n_rows) - rows_to_show(*running_[i], begin);
  if (row_shares_[i].n_rows == 0) work_.begin_sequence(begin);
  work_.add_rows(begin, n_rows);
  row_shares_[i].n_rows += n_rows;
}

// First in turn first, so that whoever must give blocks up was not served yet. A draft goes before a sequence does.
void Scheduler::reserve_blocks() {
  for (size_t i = 0; i < running_.size(); ++i) {
    while (i < running_.size() && !reserve(i)) {
      if (std::exchange(row_shares_[i].n_draft, 0) == 0) preempt_last();
    }
  }
}

bool Scheduler::reserve(size_t i) {
  Sequence& sequence = *running_[i];
  const int32_t end = sequence.n_computed + row_shares_[i].n_rows + row_shares_[i].n_draft;
  if (!blocks_.grow(sequence.table, end)) return false;
  for (int32_t position = sequence.n_computed; position < end;) {
    bool failed = false;
    const auto copy = blocks_.make_writable(sequence.table, position, failed);
    if (failed) return false;
    if (copy && copy->n_tokens > 0) plan_.copies.push_back(*copy);
    position = (position / options_.block_tokens + 1) * options_.block_tokens;
  }
  return true;
}

void Scheduler::build_batch() {
  plan_.slices.clear();
  plan_.tokens.clear();
  plan_.positions.clear();
  plan_.seqs.clear();
  plan_.out_rows.clear();
  plan_.n_prefill_rows = 0;
  plan_.n_draft_rows = 0;
  plan_.n_shown_rows = 0;
  plan_.expected_ns = options_.costs.step_ns(work_);
  for (size_t i = 0; i < running_.size(); ++i) {
    if (row_shares_[i].n_rows > 0) append_slice(*running_[i], row_shares_[i]);
  }
  append_blocks();
}

void Scheduler::append_slice(const Sequence& sequence, RowShare share) {
  const int32_t n_past = sequence.n_computed;
  PlannedSlice slice{.sequence = &sequence, .first_row = static_cast<int32_t>(plan_.tokens.size())};
  slice.n_rows = share.n_rows + share.n_draft;
  slice.n_draft = share.n_draft;
  const auto known = sequence.tokens.begin() + n_past;
  plan_.tokens.insert(plan_.tokens.end(), known, known + share.n_rows);
  plan_.tokens.insert(plan_.tokens.end(), sequence.draft.begin(), sequence.draft.begin() + share.n_draft);
  for (int32_t i = 0; i < slice.n_rows; ++i) plan_.positions.push_back(n_past + i);
  slice.n_shown = rows_to_show(sequence, n_past + share.n_rows);
  plan_.n_shown_rows += slice.n_shown;
  slice.shown_row = static_cast<int32_t>(plan_.out_rows.size());
  const int32_t first_shown = slice.first_row + std::max(0, sequence.shown_begin - n_past);
  for (int32_t i = 0; i < slice.n_shown; ++i) plan_.out_rows.push_back(first_shown + i);
  if (share.n_rows == sequence.n_pending()) {
    slice.out_row = static_cast<int32_t>(plan_.out_rows.size());
    slice.n_out = 1 + share.n_draft;
    const int32_t end = slice.first_row + slice.n_rows;
    for (int32_t row = end - slice.n_out; row < end; ++row) plan_.out_rows.push_back(row);
  }
  if (sequence.n_pending() > 1) plan_.n_prefill_rows += slice.n_rows;
  plan_.n_draft_rows += share.n_draft;
  plan_.slices.push_back(slice);
  plan_.seqs.push_back({slice.first_row, slice.n_rows, n_past});
}

void Scheduler::append_blocks() {
  plan_.max_blocks = 0;
  for (const PlannedSlice& slice : plan_.slices) {
    plan_.max_blocks = std::max(plan_.max_blocks, static_cast<int32_t>(slice.sequence->table.blocks.size()));
  }
  plan_.block_table.clear();
  for (const PlannedSlice& slice : plan_.slices) {
    const auto& blocks = slice.sequence->table.blocks;
    plan_.block_table.insert(plan_.block_table.end(), blocks.begin(), blocks.end());
    plan_.block_table.resize(plan_.block_table.size() + static_cast<size_t>(plan_.max_blocks) - blocks.size(),
                             kNoBlock);
  }
}

}  // namespace candor::sched
