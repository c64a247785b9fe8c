#include "sched/row_sharing.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sched/sequence.h"

namespace candor::sched {
namespace {

// Rows that a prompt gets in any case: the weights stream for the decoding rows anyway, and nobody starves.
constexpr int32_t kLeastPromptRows = 4;

}  // namespace

RowSharing::RowSharing(const SchedulerState& state) : state_(&state) {
  const size_t n_places = static_cast<size_t>(state.options.max_running);
  row_shares_.reserve(n_places + 1);
  readers_.reserve(n_places + 1);
}

bool RowSharing::drop_draft(size_t i) {
  return std::exchange(row_shares_[i].n_draft, 0) > 0;
}

void RowSharing::share(const StepBudget& budget) {
  row_shares_.assign(running().size(), {});
  work_ = {};
  readers_.clear();
  n_shown_left_ = std::max(budget.max_shown_rows, 1);
  if (state_->options.reads_whole) return share_whole(budget);
  share_decoding();
  if (!awaits_image()) share_drafts(budget);
  size_prompt_chunks(budget);
  for (const size_t i : readers_) fit_images(i, budget);
}

// Drafts leave the rows to a sequence whose next rows are an image that is read whole.
bool RowSharing::awaits_image() const {
  return std::ranges::any_of(running(), [](const auto& sequence) {
    return sequence->n_pending() > 1 && sequence->whole_image_at(sequence->n_computed) != nullptr;
  });
}

// A chunk that ends inside an image whose rows see one another goes on to its end, or ends before it.
void RowSharing::fit_images(size_t i, const StepBudget& budget) {
  const Sequence& sequence = *running()[i];
  const int32_t n_given = row_shares_[i].n_rows;
  const int32_t end = sequence.n_computed + n_given;
  const ImageRows* image = end < sequence.n_tokens() ? sequence.whole_image_at(end) : nullptr;
  if (image == nullptr) return;
  const int32_t n_more = image->end() - end;
  const bool fits = work_.n_rows + n_more <= budget.max_rows && rows_that_show(i, n_more) == n_more;
  const bool is_inside = image->first < end || n_given == 0;
  if (fits && is_inside) {
    give_rows(i, n_more);
  } else if (is_inside) {
    give_rows(i, -std::min(n_given, end - image->first));
  }
}

void RowSharing::share_decoding() {
  for (size_t i = 0; i < running().size(); ++i) {
    if (running()[i]->n_pending() != 1) continue;
    give_rows(i, 1);
    ++work_.n_out_rows;
  }
}

void RowSharing::share_drafts(const StepBudget& budget) {
  int64_t n_out_left = std::max(budget.max_out_rows, state_->options.max_running) - state_->sequences.n_running();
  const auto shows = [](const auto& sequence) { return sequence->rows_to_show(sequence->n_tokens()) > 0; };
  // A recurrent state behind each draft needs a slot, which there is for those of max_out_rows.
  int64_t n_more = state_->options.n_states > 0            ? 0
                   : std::ranges::any_of(running(), shows) ? n_shown_left_ / 2
                                                           : n_shown_left_;
  for (size_t i = 0; i < running().size(); ++i) {
    const Sequence& sequence = *running()[i];
    if (sequence.n_pending() != 1 || sequence.draft.empty()) continue;
    const int64_t n = std::min({static_cast<int64_t>(sequence.draft.size()), n_out_left + n_more,
                                budget.max_rows - work_.n_rows, int64_t{state_->options.n_ctx} - sequence.n_tokens()});
    if (n <= 0) continue;
    work_.add_rows(sequence.n_tokens(), n);
    work_.n_out_rows += n;
    const int64_t n_beyond = std::max<int64_t>(0, n - n_out_left);
    n_shown_left_ -= n_beyond;
    n_more -= n_beyond;
    n_out_left -= n - n_beyond;
    row_shares_[i].n_draft = static_cast<int32_t>(n);
  }
}

// In turn, as many sequences as there are rows for; one that is too long for what is left waits, and keeps none behind
// it from being read.
void RowSharing::share_whole(const StepBudget& budget) {
  for (size_t i = 0; i < running().size(); ++i) {
    const Sequence& sequence = *running()[i];
    const int32_t n = sequence.n_pending();
    const bool fits = work_.n_rows + n <= budget.max_rows && sequence.rows_to_show(n) <= n_shown_left_;
    if (n == 0 || !(fits || work_.n_rows == 0)) continue;
    give_rows(i, n);
    ++work_.n_out_rows;
  }
}

// Chunk lengths: the first in turn at least half of what fits, then the shortest of the others, then the first again.
void RowSharing::size_prompt_chunks(const StepBudget& budget) {
  for (size_t i = 0; i < running().size(); ++i) {
    if (running()[i]->n_pending() > 1) readers_.push_back(i);
  }
  if (readers_.empty()) return;
  const auto served = [this](size_t i) { return state_->shares.served(running()[i]->share_key); };
  const auto comes_before = [&](size_t a, size_t b) {
    if (running()[a]->rank != running()[b]->rank) return running()[a]->rank > running()[b]->rank;
    return served(a) != served(b) ? served(a) < served(b) : a < b;
  };
  std::ranges::swap(readers_.front(), *std::ranges::min_element(readers_, comes_before));
  std::sort(readers_.begin() + 1, readers_.end(), [&](size_t a, size_t b) {
    const int32_t n_a = running()[a]->n_pending();
    const int32_t n_b = running()[b]->n_pending();
    return n_a != n_b ? n_a < n_b : a < b;
  });
  const int64_t alone_ns = state_->options.costs.step_ns(work_);
  limit_ns_ = work_.n_rows == 0           ? std::numeric_limits<int64_t>::max()
              : budget.decode_step_ns > 0 ? budget.decode_step_ns
                                          : alone_ns * kStretchPercent / 100;
  const int64_t end = std::min<int64_t>(budget.max_rows, work_.n_rows + std::max(1, budget.max_prefill_rows));
  const auto n_left = [&] { return static_cast<int32_t>(end - work_.n_rows); };
  const size_t first = readers_.front();
  const int32_t n_first = std::max(rows_that_fit(first, n_left()), std::min(kLeastPromptRows, n_left()));
  const int32_t n_at_once = std::min(running()[first]->n_pending(), readers_.size() == 1 ? n_first : (n_first + 1) / 2);
  give_rows(first, rows_that_show(first, n_at_once));
  for (size_t r = 1; r < readers_.size(); ++r) give_rows(readers_[r], rows_that_fit(readers_[r], n_left()));
  give_rows(first, rows_that_fit(first, n_left()));
}

// The most rows of sequence i, up to n_most, that keep the step within its limit.
int32_t RowSharing::rows_that_fit(size_t i, int32_t n_most) const {
  const Sequence& sequence = *running()[i];
  const int32_t n_given = row_shares_[i].n_rows;
  const int32_t n_past = sequence.n_computed + n_given;
  int32_t low = 0;
  int32_t high = rows_that_show(i, std::max(0, std::min(n_most, sequence.n_pending() - n_given)));
  while (low < high) {
    const int32_t n = low + (high - low + 1) / 2;
    StepWork work = work_;
    if (n_given == 0) work.begin_sequence(n_past);
    work.add_rows(n_past, n);
    const bool fits = state_->options.costs.step_ns(work) <= limit_ns_;
    (fits ? low : high) = fits ? n : n - 1;
  }
  return low;
}

// As many further rows of sequence i, up to n_most, as there is room for what they show.
int32_t RowSharing::rows_that_show(size_t i, int32_t n_most) const {
  const Sequence& sequence = *running()[i];
  const int32_t begin = sequence.n_computed + row_shares_[i].n_rows;
  const int64_t n_shown = sequence.rows_to_show(begin + n_most) - sequence.rows_to_show(begin);
  if (n_shown <= n_shown_left_) return n_most;
  return std::max(0, sequence.shown_begin - begin) + static_cast<int32_t>(n_shown_left_);
}

void RowSharing::give_rows(size_t i, int32_t n_rows) {
  const Sequence& sequence = *running()[i];
  const int32_t begin = sequence.n_computed + row_shares_[i].n_rows;
  n_shown_left_ -= sequence.rows_to_show(begin + n_rows) - sequence.rows_to_show(begin);
  if (row_shares_[i].n_rows == 0) work_.begin_sequence(begin);
  work_.add_rows(begin, n_rows);
  row_shares_[i].n_rows += n_rows;
}

}  // namespace candor::sched
