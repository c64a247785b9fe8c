#include "backend/cpu/shared_prefixes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace candor::backend::cpu {
namespace {

struct Seq {
  int32_t n_past = 0;
  int32_t n_rows = 1;
  std::vector<BlockId> blocks;
};

std::vector<BlockId> ascending(BlockId first, int32_t n) {
  std::vector<BlockId> blocks(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) blocks[static_cast<size_t>(i)] = first + i;
  return blocks;
}

// Blocks [0, n_shared), then others from `own` on.
Seq branch(int32_t n_shared, BlockId own, int32_t n_past, int32_t n_rows = 1) {
  Seq seq{n_past, n_rows, ascending(0, n_shared)};
  for (const BlockId block : ascending(own, 4)) seq.blocks.push_back(block);
  return seq;
}

class Batch {
 public:
  explicit Batch(const std::vector<Seq>& seqs) {
    size_t most = 0;
    for (const Seq& seq : seqs) most = std::max(most, seq.blocks.size());
    int32_t row = 0;
    for (const Seq& seq : seqs) {
      slices_.push_back({row, seq.n_rows, seq.n_past});
      row += seq.n_rows;
      table_.insert(table_.end(), seq.blocks.begin(), seq.blocks.end());
      table_.resize(slices_.size() * most, kNoBlock);
    }
    max_blocks_ = static_cast<int32_t>(most);
  }
  StepBatch view() const {
    StepBatch batch;
    batch.seqs = slices_;
    batch.block_table = table_;
    batch.max_blocks = max_blocks_;
    return batch;
  }

 private:
  std::vector<SeqSlice> slices_;
  std::vector<BlockId> table_;
  int32_t max_blocks_ = 0;
};

std::vector<size_t> seqs_of(const SharedPrefixes& shared, const SharedPrefix& prefix) {
  std::vector<size_t> seqs;
  for (size_t m = prefix.begin; m < prefix.end; ++m) seqs.push_back(shared.members()[m].seq);
  return seqs;
}

TEST(shared_prefixes, sequences_of_one_beginning_are_found_among_others_with_their_rows) {
  const Batch batch({branch(10, 100, 330), {400, 1, ascending(50, 13)}, branch(12, 200, 400, 3), branch(10, 300, 325)});
  SharedPrefixes shared;
  shared.find(batch.view());
  ASSERT_EQ(shared.prefixes().size(), 1u);
  const SharedPrefix& prefix = shared.prefixes()[0];
  EXPECT_EQ(prefix.n_tokens, 256);  // 320 in whole key tiles
  EXPECT_EQ(seqs_of(shared, prefix), (std::vector<size_t>{0, 2, 3}));
  const auto rows = shared.rows_of(prefix);
  EXPECT_EQ(std::vector<int32_t>(rows.begin(), rows.end()), (std::vector<int32_t>{0, 2, 3, 4, 5}));
  EXPECT_TRUE(shared.is_member(2));
  EXPECT_FALSE(shared.is_member(1));
}

TEST(shared_prefixes, no_row_is_promised_tokens_that_come_after_it) {
  // Both hold the same blocks, of which one has only begun to use the last ones.
  const Batch batch({branch(16, 100, 512), branch(16, 200, 383)});
  SharedPrefixes shared;
  shared.find(batch.view());
  ASSERT_EQ(shared.prefixes().size(), 1u);
  EXPECT_EQ(shared.prefixes()[0].n_tokens, 256);
}

TEST(shared_prefixes, many_rows_short_beginnings_and_lone_sequences_take_no_part) {
  SharedPrefixes shared;
  for (const std::vector<Seq>& seqs :
       {std::vector<Seq>{branch(10, 100, 330), branch(10, 200, 330, SharedPrefixes::kMostRows + 1)},
        std::vector<Seq>{branch(7, 100, 330), branch(7, 200, 330)},
        std::vector<Seq>{branch(10, 100, 330), branch(10, 200, 255)}, std::vector<Seq>{branch(10, 100, 330)},
        std::vector<Seq>{}}) {
    shared.find(Batch(seqs).view());
    EXPECT_TRUE(shared.prefixes().empty());
    EXPECT_FALSE(shared.is_member(0));
  }
}

TEST(shared_prefixes, two_beginnings_are_two_prefixes) {
  const auto other = [](BlockId own) {
    Seq seq{600, 1, ascending(40, 18)};
    seq.blocks.push_back(own);
    return seq;
  };
  const Batch batch({branch(10, 100, 330), other(90), branch(10, 200, 330), other(91)});
  SharedPrefixes shared;
  shared.find(batch.view());
  ASSERT_EQ(shared.prefixes().size(), 2u);
  EXPECT_EQ(seqs_of(shared, shared.prefixes()[0]), (std::vector<size_t>{0, 2}));
  EXPECT_EQ(seqs_of(shared, shared.prefixes()[1]), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(shared.prefixes()[1].n_tokens, 512);
}

}  // namespace
}  // namespace candor::backend::cpu
