#include "sched/step_plan.h"

#include <algorithm>

#include "kv/state_slots.h"

namespace candor::sched {
namespace {

constexpr size_t kMostTableEntries = size_t{1} << 20;  // reserved for the block table; it may grow beyond

}  // namespace

void StepPlan::reserve(size_t n_sequences, size_t n_blocks, size_t n_states) {
  slices.reserve(n_sequences);
  seqs.reserve(n_sequences);
  groups.reserve(n_sequences);
  uses.reserve(n_sequences);
  saves.reserve(n_states);
  block_table.reserve(std::min(n_sequences * n_blocks, kMostTableEntries));
}

void StepPlan::clear() {
  slices.clear();
  tokens.clear();
  positions.clear();
  seqs.clear();
  out_rows.clear();
  saves.clear();
  groups.clear();
  vector_rows.clear();
  image_rows.clear();
  axes.clear();
  uses.clear();
  n_prefill_rows = 0;
  n_draft_rows = 0;
  n_shown_rows = 0;
}

void StepPlan::append(const Sequence& sequence, RowShare share) {
  const int32_t n_past = sequence.n_computed;
  PlannedSlice slice{.sequence = &sequence, .first_row = static_cast<int32_t>(tokens.size())};
  slice.n_rows = share.n_rows + share.n_draft;
  slice.n_draft = share.n_draft;
  const auto known = sequence.tokens.begin() + n_past;
  tokens.insert(tokens.end(), known, known + share.n_rows);
  tokens.insert(tokens.end(), sequence.draft.begin(), sequence.draft.begin() + share.n_draft);
  for (int32_t i = 0; i < slice.n_rows; ++i) positions.push_back(n_past + i);
  slice.n_shown = sequence.rows_to_show(n_past + share.n_rows);
  n_shown_rows += slice.n_shown;
  slice.shown_row = static_cast<int32_t>(out_rows.size());
  const int32_t first_shown = slice.first_row + std::max(0, sequence.shown_begin - n_past);
  for (int32_t i = 0; i < slice.n_shown; ++i) out_rows.push_back(first_shown + i);
  if (share.n_rows == sequence.n_pending()) {
    slice.out_row = static_cast<int32_t>(out_rows.size());
    slice.n_out = 1 + share.n_draft;
    const int32_t end = slice.first_row + slice.n_rows;
    for (int32_t row = end - slice.n_out; row < end; ++row) out_rows.push_back(row);
  }
  if (sequence.n_pending() > 1) n_prefill_rows += slice.n_rows;
  n_draft_rows += share.n_draft;
  slices.push_back(slice);
  const kv::StateTable& state = sequence.table.state;
  for (const kv::StateAt& coming : state.coming) {
    saves.push_back({slice.first_row + coming.n_tokens - n_past - 1, coming.slot});
  }
  seqs.push_back({.first_row = slice.first_row,
                  .n_rows = slice.n_rows,
                  .n_past = n_past,
                  .state = n_past == 0 ? kNoState : state.now,
                  .first_use = static_cast<int32_t>(uses.size()),
                  .n_uses = static_cast<int32_t>(sequence.adapters.size()),
                  .second_text = sequence.second_text});
  uses.insert(uses.end(), sequence.adapters.begin(), sequence.adapters.end());
  if (sees_ahead) groups.push_back({slice.first_row, slice.n_rows});
  append_images(sequence, slice);
}

void StepPlan::append_images(const Sequence& sequence, const PlannedSlice& slice) {
  const int32_t begin = sequence.n_computed;
  const int32_t end = begin + slice.n_rows;
  for (size_t i = 0; i < sequence.images.size(); ++i) {
    const ImageRows& image = sequence.images[i];
    const int32_t first = std::max(begin, image.first);
    const int32_t last = std::min(end, image.end());
    if (first >= last) continue;
    const int32_t row = slice.first_row + first - begin;
    if (image.is_seen_whole) groups.push_back({row, last - first});
    for (int32_t token = first; token < last; ++token) {
      vector_rows.push_back(slice.first_row + token - begin);
      image_rows.push_back({sequence.id, static_cast<int32_t>(i), token - image.first});
    }
  }
}

void StepPlan::append_axes() {
  if (std::ranges::none_of(slices, [](const PlannedSlice& slice) { return slice.sequence->has_grids(); })) return;
  for (const PlannedSlice& slice : slices) {
    for (int32_t i = 0; i < slice.n_rows; ++i) {
      for (const int32_t position : slice.sequence->axes_of(slice.sequence->n_computed + i)) axes.push_back(position);
    }
  }
}

void StepPlan::append_blocks() {
  max_blocks = 0;
  for (const PlannedSlice& slice : slices) {
    max_blocks = std::max(max_blocks, static_cast<int32_t>(slice.sequence->table.blocks.size()));
  }
  block_table.clear();
  for (const PlannedSlice& slice : slices) {
    const auto& blocks = slice.sequence->table.blocks;
    block_table.insert(block_table.end(), blocks.begin(), blocks.end());
    block_table.resize(block_table.size() + static_cast<size_t>(max_blocks) - blocks.size(), kNoBlock);
  }
}

}  // namespace candor::sched
