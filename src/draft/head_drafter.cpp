#include "draft/head_drafter.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/error.h"

namespace candor::draft {

size_t vector_width(const model::ArchSpec& head) {
  return static_cast<size_t>(head.embed.vector_dim > 0 ? head.embed.vector_dim : head.dim);
}

HeadDrafter::HeadDrafter(backend::Backend& backend, model::Model& head, backend::KvStore& kv, DraftSlots slots,
                         Limits limits, const kernels::KernelTable& kernels)
    : backend_(backend),
      head_(head),
      kv_(kv),
      slots_of_(slots),
      limits_(limits),
      width_(vector_width(head.spec())),
      attends_(head.spec().blocks.front().has_attention),
      slots_(static_cast<size_t>(slots.n_slots)),
      work_(static_cast<size_t>(slots.n_slots)),
      sampler_(kernels) {
  for (Slot& slot : slots_) {
    slot.tokens.reserve(static_cast<size_t>(kKeptVectors));
    slot.vectors.reserve(static_cast<size_t>(kKeptVectors) * width_);
  }
}

HeadDrafter::Slot* HeadDrafter::find(SequenceId sequence) {
  const auto own = std::ranges::find(slots_, sequence, &Slot::owner);
  return own == slots_.end() ? nullptr : &*own;
}

// The sequence's own, or the one that was used longest ago.
HeadDrafter::Slot& HeadDrafter::slot_for(SequenceId sequence) {
  if (Slot* own = find(sequence)) return *own;
  Slot& slot = *std::ranges::min_element(slots_, {}, &Slot::used_at);
  slot.owner = sequence;
  slot.tokens.clear();
  slot.vectors.clear();
  slot.n_read = 0;
  return slot;
}

// What stands from position `end` on is of no text any more.
void HeadDrafter::cut(Slot& slot, int32_t end) const {
  const int32_t n_left = std::clamp(end - slot.kept_begin, 0, static_cast<int32_t>(slot.tokens.size()));
  slot.tokens.resize(static_cast<size_t>(n_left));
  slot.vectors.resize(static_cast<size_t>(n_left) * width_);
  slot.n_read = std::clamp(end - slot.begin, 0, slot.n_read);
}

void HeadDrafter::keep_newest(Slot& slot) const {
  if (slot.tokens.size() <= static_cast<size_t>(kHeadRows)) return;
  const auto n_old = static_cast<std::ptrdiff_t>(slot.tokens.size()) - kHeadRows;
  slot.tokens.erase(slot.tokens.begin(), slot.tokens.begin() + n_old);
  slot.vectors.erase(slot.vectors.begin(), slot.vectors.begin() + n_old * static_cast<std::ptrdiff_t>(width_));
  slot.kept_begin += static_cast<int32_t>(n_old);
}

void HeadDrafter::watch(const ComputedRows& rows) {
  Slot& slot = slot_for(rows.sequence);
  slot.used_at = ++n_calls_;
  cut(slot, rows.first);
  const auto n_new = static_cast<int32_t>(rows.tokens.size());
  const int32_t n_skipped = std::max(0, n_new - kHeadRows);
  if (slot.kept_end() != rows.first || n_skipped > 0 || slot.tokens.empty()) {
    slot.tokens.clear();
    slot.vectors.clear();
    slot.kept_begin = rows.first + n_skipped;
  }
  if (slot.tokens.size() + rows.tokens.size() > static_cast<size_t>(kKeptVectors)) keep_newest(slot);
  const auto tokens = rows.tokens.subspan(static_cast<size_t>(n_skipped));
  const auto vectors = rows.vectors.subspan(static_cast<size_t>(n_skipped) * width_);
  slot.tokens.insert(slot.tokens.end(), tokens.begin(), tokens.end());
  slot.vectors.insert(slot.vectors.end(), vectors.begin(), vectors.end());
}

void HeadDrafter::forget() noexcept {
  for (Slot& slot : slots_) {
    slot.owner = -1;
    slot.tokens.clear();
    slot.vectors.clear();
    slot.n_read = 0;
  }
  for (Work& work : work_) work.choice.drop_constraint();
}

size_t HeadDrafter::n_behind(SequenceId sequence, size_t n_text) const {
  if (!attends_) return 1;
  const auto own = std::ranges::find(slots_, sequence, &Slot::owner);
  const auto n_first = static_cast<size_t>(limits_.n_first);
  if (own == slots_.end() || own->n_read == 0) return std::clamp<size_t>(n_text - 1, 1, n_first);
  const auto n_read = static_cast<size_t>(own->read_end());
  return n_read + 1 < n_text ? std::min(n_text - 1 - n_read, static_cast<size_t>(kHeadRows)) : 1;
}

// Whether all that is kept is of the text, up to its last token but one.
bool HeadDrafter::is_of(const Slot& slot, std::span<const TokenId> text) const {
  if (slot.tokens.empty() || static_cast<size_t>(slot.kept_end()) + 1 != text.size()) return false;
  return std::ranges::equal(slot.tokens, text.subspan(static_cast<size_t>(slot.kept_begin), slot.tokens.size()));
}

// Afterwards there is at least one row to read, and room for it and the drafts.
bool HeadDrafter::open_window(Slot& slot, const DraftRequest& request) const {
  const auto end = static_cast<int32_t>(request.text.size()) - 1;
  cut(slot, end);
  if (!is_of(slot, request.text)) return false;
  const bool is_gapless = attends_ && slot.n_read > 0 && slot.read_end() >= slot.kept_begin;
  const bool has_room = end - slot.begin + request.n_drafts <= slot_tokens();
  if (is_gapless && has_room && end - slot.read_end() <= kHeadRows) {
    slot.n_read = std::min(slot.n_read, end - 1 - slot.begin);
    if (slot.read_end() >= slot.kept_begin) return true;
  }
  const int32_t n_rows = attends_ ? std::min(limits_.n_first, slot_tokens() / 2) : 1;
  slot.begin = std::max(slot.kept_begin, end - n_rows);
  slot.n_read = 0;
  return true;
}

void HeadDrafter::open(Work& work, DraftRequest& request) {
  work.choice.begin(request);
  work.slot = find(request.sequence);
  const bool is_open = work.slot != nullptr && open_window(*work.slot, request);
  if (!is_open) return work.choice.end();
  work.slot->used_at = ++n_calls_;
}

void HeadDrafter::propose(std::span<DraftRequest> requests, constrain::MaskWorker* masks) {
  CANDOR_CHECK(requests.size() <= slots_.size());
  n_work_ = requests.size();
  for (size_t i = 0; i < n_work_; ++i) open(work_[i], requests[i]);
  for (bool is_first = true; build_step(is_first); is_first = false) {
    const backend::StepBatch batch{.tokens = tokens_,
                                   .positions = positions_,
                                   .seqs = slices_,
                                   .block_table = blocks_,
                                   .max_blocks = slots_of_.slot_blocks,
                                   .out_rows = out_rows_,
                                   .vector_rows = vector_rows_,
                                   .vectors = vectors_};
    const backend::LogitsView logits = backend_.read_logits(head_.launch(batch, kv_));
    const backend::RowsView given = head_.hidden(static_cast<int32_t>(out_rows_.size()));
    for (Work& work : std::span(work_).first(n_work_)) {
      if (work.choice.is_over()) continue;
      work.choice.draft(all_logits(logits.row(work.out_row)), std::nullopt, sampler_, masks);
      const auto own = given.row(work.out_row);
      if (!work.choice.is_over()) work.own.assign(own.begin(), own.end());
    }
    if (masks != nullptr) masks->send();
  }
}

// Tokens that the head has no logit of are never drafted.
std::span<const float> HeadDrafter::all_logits(std::span<const float> given) {
  const auto n_vocab = static_cast<size_t>(limits_.n_vocab);
  if (limits_.tokens.empty() && given.size() >= n_vocab) return given.first(n_vocab);
  logits_.assign(n_vocab, -std::numeric_limits<float>::infinity());
  if (limits_.tokens.empty()) std::ranges::copy(given, logits_.begin());
  for (size_t i = 0; i < limits_.tokens.size(); ++i) {
    const auto token = static_cast<size_t>(limits_.tokens[i]);
    if (token < n_vocab) logits_[token] = given[i];
  }
  return logits_;
}

bool HeadDrafter::build_step(bool is_first) {
  tokens_.clear();
  positions_.clear();
  vectors_.clear();
  vector_rows_.clear();
  slices_.clear();
  blocks_.clear();
  out_rows_.clear();
  for (Work& work : std::span(work_).first(n_work_)) {
    if (work.choice.is_over()) continue;
    is_first ? append_known(work) : append_draft(work);
  }
  return !tokens_.empty();
}

// Rows of the text whose vectors the model gave.
void HeadDrafter::append_known(Work& work) {
  Slot& slot = *work.slot;
  const std::span<const TokenId> text = work.choice.request().text;
  const int32_t n_rows = slot.kept_end() - slot.read_end();
  if (n_rows > limits_.max_rows - static_cast<int32_t>(tokens_.size()))
    return work.choice.end();  // no drafts this time
  const int32_t n_past = slot.n_read;
  for (int32_t position = slot.read_end(); position < slot.kept_end(); ++position) {
    const size_t kept = static_cast<size_t>(position - slot.kept_begin);
    positions_.push_back(position - slot.begin);
    append_row(text[static_cast<size_t>(position) + 1], std::span(slot.vectors).subspan(kept * width_, width_));
  }
  slot.n_read += n_rows;
  work.n_rows = slot.n_read;
  slices_.push_back({static_cast<int32_t>(tokens_.size()) - n_rows, n_rows, n_past});
  end_slice(work);
}

void HeadDrafter::append_draft(Work& work) {
  const int32_t n_past = work.n_rows++;
  positions_.push_back(n_past);
  append_row(work.choice.request().drafts.back(), work.own);
  slices_.push_back({static_cast<int32_t>(tokens_.size()) - 1, 1, n_past});
  end_slice(work);
}

void HeadDrafter::append_row(TokenId token, std::span<const float> vector) {
  vector_rows_.push_back(static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(token);
  vectors_.insert(vectors_.end(), vector.begin(), vector.end());
}

void HeadDrafter::end_slice(Work& work) {
  const auto first_block = static_cast<int32_t>(work.slot - slots_.data()) * slots_of_.slot_blocks;
  for (int32_t i = 0; i < slots_of_.slot_blocks; ++i) blocks_.push_back(first_block + i);
  work.out_row = static_cast<int32_t>(out_rows_.size());
  out_rows_.push_back(static_cast<int32_t>(tokens_.size()) - 1);
}

}  // namespace candor::draft
