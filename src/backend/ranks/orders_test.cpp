#include "backend/ranks/orders.h"

#include <gtest/gtest.h>

namespace candor::backend {
namespace {

TEST(orders, a_step_arrives_as_it_was) {
  const std::vector<TokenId> tokens = {5, 6, 7};
  const std::vector<int32_t> positions = {0, 1, 9};
  const std::vector<SeqSlice> seqs = {{0, 2, 0, kNoState}, {2, 1, 9, 4}};
  const std::vector<BlockId> table = {3, 1, 0, 2};
  const std::vector<int32_t> out_rows = {1, 2};
  const std::vector<StateSave> saves = {{1, 7}, {2, 8}};
  const std::vector<VisibleGroup> groups = {{0, 2}};
  const std::vector<int32_t> vector_rows = {1};
  const std::vector<float> vectors = {0.5f, 1.5f};
  const std::vector<AdapterUse> uses = {{3, 0.5f}, {1, 1.0f}};
  StepBatch batch{tokens, positions, seqs, table, 2, out_rows, saves, groups, vector_rows, vectors};
  batch.uses = uses;
  Bytes bytes;
  write_step(bytes, {.model = 1, .first = 2, .end = 5, .is_attention = true}, 3, batch);

  OrderReader reader(bytes);
  EXPECT_EQ(reader.take<Order>(), Order::kStep);
  StepOrder step;
  step.tokens = {1, 2, 3, 4, 5, 6};  // of the step before
  read_step(reader, step);
  EXPECT_EQ(step.pass.model, 1);
  EXPECT_EQ(step.pass.first, 2);
  EXPECT_EQ(step.pass.end, 5);
  EXPECT_TRUE(step.pass.is_attention);
  EXPECT_EQ(step.kv, 3);
  const StepBatch found = step.batch();
  EXPECT_EQ(step.tokens, tokens);
  EXPECT_EQ(step.positions, positions);
  EXPECT_EQ(step.block_table, table);
  EXPECT_EQ(step.out_rows, out_rows);
  EXPECT_EQ(found.max_blocks, 2);
  ASSERT_EQ(found.seqs.size(), 2u);
  EXPECT_EQ(found.seqs[1].n_past, 9);
  EXPECT_EQ(found.seqs[1].state, 4);
  ASSERT_EQ(found.saves.size(), 2u);
  EXPECT_EQ(found.saves[1].slot, 8);
  EXPECT_EQ(found.kinds(), batch.kinds());
  EXPECT_EQ(step.uses, uses);
  ASSERT_NE(found.group_of(1), nullptr);
  EXPECT_EQ(found.group_of(2), nullptr);
  ASSERT_NE(found.vector_of(1), nullptr);
  EXPECT_EQ(found.vector_of(1)[1], 1.5f);
  EXPECT_EQ(found.vector_of(0), nullptr);
}

TEST(orders, an_arena_arrives_as_it_was) {
  const ArenaLayout layout{{3, 5}, {false, true}, 7, 2, 11, 13};
  Bytes bytes;
  write_arena(bytes, layout);
  OrderReader reader(bytes);
  EXPECT_EQ(reader.take<Order>(), Order::kReserve);
  const ArenaLayout found = read_arena(reader);
  EXPECT_EQ(found.slot_cols, layout.slot_cols);
  EXPECT_EQ(found.slot_is_output, layout.slot_is_output);
  EXPECT_EQ(found.max_rows, 7);
  EXPECT_EQ(found.max_out_rows, 2);
  EXPECT_EQ(found.max_input_cols, 11);
  EXPECT_EQ(found.max_positions, 13);
}

TEST(orders, a_layout_arrives_as_it_was) {
  const KvLayout layout{.n_layers = 2,
                        .n_kv_heads = 4,
                        .head_dim = 64,
                        .type = KvType::kQ8_0,
                        .state = {3, 1000},
                        .latent_dim = 3,
                        .heads = {{4, 64}, {1, 128}}};
  Bytes bytes;
  write_make_kv(bytes, layout, {17, 5});
  OrderReader reader(bytes);
  EXPECT_EQ(reader.take<Order>(), Order::kMakeKv);
  EXPECT_EQ(read_layout(reader), layout);
  EXPECT_EQ(reader.take<int32_t>(), 17);
  EXPECT_EQ(reader.take<int32_t>(), 5);
}

}  // namespace
}  // namespace candor::backend
