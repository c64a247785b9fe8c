#pragma once
// For tests: a model without weights that notices every wrong block.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "base/hash.h"
#include "sched/step_plan.h"

namespace candor::sched {

// A model whose next token is a hash of the whole text before it, read from a K/V store of its own: a wrong block, a
// stale position or a missing copy shows as a wrong token.
class FakeModel {
 public:
  FakeModel(int32_t n_blocks, int32_t block_tokens, int32_t n_states = 0)
      : block_tokens_(block_tokens),
        store_(static_cast<size_t>(n_blocks * block_tokens)),
        slots_(static_cast<size_t>(n_states)) {}

  static TokenId next_token(uint64_t state) { return static_cast<TokenId>(state % 1000); }
  static uint64_t push(uint64_t state, TokenId token, int32_t position) {
    return hash_mix(hash_mix(state, static_cast<uint64_t>(token)), static_cast<uint64_t>(position));
  }

  // The state after each row that is wanted.
  std::vector<uint64_t> run(const StepPlan& plan) {
    for (const kv::BlockCopy& copy : plan.copies) {
      for (int32_t i = 0; i < copy.n_tokens; ++i) cell(copy.dst, i) = cell(copy.src, i);
    }
    const backend::StepBatch batch = plan.batch();
    check_saves(batch);
    std::vector<uint64_t> states(static_cast<size_t>(batch.n_rows()));
    int32_t expected_row = 0;
    for (size_t s = 0; s < batch.seqs.size(); ++s) {
      EXPECT_EQ(batch.seqs[s].first_row, expected_row);
      expected_row += batch.seqs[s].n_rows;
      run_slice(batch, s, states);
    }
    EXPECT_EQ(expected_row, batch.n_rows());
    std::vector<uint64_t> wanted;
    for (const int32_t row : batch.out_rows) wanted.push_back(states[static_cast<size_t>(row)]);
    return wanted;
  }

 private:
  uint64_t& cell(BlockId block, int32_t i) { return store_[static_cast<size_t>(block * block_tokens_ + i)]; }

  void run_slice(const backend::StepBatch& batch, size_t s, std::vector<uint64_t>& states) {
    const backend::SeqSlice& slice = batch.seqs[s];
    const auto blocks = batch.blocks_of(s);
    for (int32_t i = 0; i < slice.n_rows; ++i) {
      const size_t row = static_cast<size_t>(slice.first_row + i);
      const int32_t position = slice.n_past + i;
      EXPECT_EQ(batch.positions[row], position);
      const auto at = [&](int32_t p) -> uint64_t& {
        const BlockId block = blocks[static_cast<size_t>(p / block_tokens_)];
        EXPECT_GE(block, 0);
        return cell(std::max(block, 0), p % block_tokens_);
      };
      const uint64_t past = position == 0 ? 0 : at(position - 1);
      if (i == 0 && !slots_.empty()) expect_state(slice, past);
      states[row] = at(position) = push(past, batch.tokens[row], position);
    }
    for (const backend::StateSave& save : batch.saves_of(slice)) {
      slot(save.slot) = states[static_cast<size_t>(save.row)];
    }
  }

  uint64_t& slot(StateId id) { return slots_.at(static_cast<size_t>(id)); }

  // The recurrent state before the slice is that of its text.
  void expect_state(const backend::SeqSlice& slice, uint64_t past) {
    EXPECT_EQ(slice.state == kNoState, slice.n_past == 0);
    if (slice.state == kNoState) return;
    EXPECT_EQ(slot(slice.state), past) << "behind " << slice.n_past << " tokens";
  }

  // Each slice is saved behind its last row, and no slot is written twice or read.
  void check_saves(const backend::StepBatch& batch) const {
    EXPECT_EQ(batch.saves.empty(), slots_.empty() || batch.seqs.empty());
    std::vector<bool> is_taken(slots_.size());
    for (const backend::SeqSlice& slice : batch.seqs) {
      if (slice.state != kNoState) is_taken.at(static_cast<size_t>(slice.state)) = true;
    }
    for (const backend::StateSave& save : batch.saves) {
      EXPECT_FALSE(is_taken.at(static_cast<size_t>(save.slot)));
      is_taken.at(static_cast<size_t>(save.slot)) = true;
    }
    for (const backend::SeqSlice& slice : batch.seqs) {
      if (slots_.empty()) break;
      const auto saves = batch.saves_of(slice);
      EXPECT_TRUE(!saves.empty() && saves.back().row == slice.first_row + slice.n_rows - 1);
    }
  }

  int32_t block_tokens_;
  std::vector<uint64_t> store_;
  std::vector<uint64_t> slots_;  // of recurrent states
};

}  // namespace candor::sched
