// What else a model on two sides has as on one: memory as planned, hidden rows, parts of a step, what its heads look
// at; and how little crosses.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "backend/wrap/attention_watch.h"
#include "mixed/two_sides.h"
#include "model/model.h"
#include "support/model_runner.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

using backend::MixedBackend;
using backend::Side;

constexpr int32_t kBlocks = 4;
const std::vector<TokenId> kPrompt = {5, 17, 3, 42, 8, 91, 60, 2, 33, 71};

std::unique_ptr<MemoryModelFile> make_file() {
  return make_tiny_model({.n_layers = kBlocks, .has_biases = true});
}

std::unique_ptr<ModelRunner> run_on(const formats::ModelFile& file, std::unique_ptr<backend::Backend> backend) {
  return ModelRunner::make(file, std::move(backend), {.max_rows = 16, .n_blocks = 4});
}

MixedBackend& mixed_of(ModelRunner& runner) {
  return static_cast<MixedBackend&>(runner.backend());
}

TEST(mixed_model, memory_is_as_planned_on_each_side) {
  const auto file = make_file();
  const auto spec = model::read_arch(*file);
  ASSERT_TRUE(spec);
  for (const backend::Placement& placement : placements_of(*spec)) {
    const auto runner = run_on(*file, make_two_sides(placement));
    ASSERT_NE(runner, nullptr);
    const MixedBackend& both = mixed_of(*runner);
    EXPECT_EQ(model::plan_model(*file, both)->weight_bytes, runner->model().weight_bytes());
    const auto parts = model::part_bytes(*file, both.on(Side::kDevice));
    ASSERT_TRUE(parts);
    EXPECT_EQ(bytes_on(Side::kDevice, placement, *parts) + bytes_on(Side::kHost, placement, *parts),
              runner->model().weight_bytes());
    const backend::KvLayout layout = runner->model().kv_layout(KvType::kBf16);
    EXPECT_EQ(both.kv_block_bytes(layout),
              both.kv_block_bytes_on(Side::kDevice, layout) + both.kv_block_bytes_on(Side::kHost, layout));
    for (const Side side : {Side::kDevice, Side::kHost}) {
      EXPECT_EQ(both.kv_block_bytes_on(side, layout) > 0, std::ranges::count(placement.kv_layers, side) > 0);
    }
  }
}

// A row goes to the device once where its layers are the last ones. Of experts on the host, what they read and the
// router's scores come from each block, and what they give goes back.
TEST(mixed_model, little_crosses) {
  const auto copies_of = [](const formats::ModelFile& file, const backend::Placement& placement) {
    const auto runner = run_on(file, make_two_sides(placement));
    if (runner == nullptr) return int64_t{-1};
    const size_t sequence = runner->new_sequence();
    runner->step({{sequence, kPrompt}});
    const int64_t before = mixed_of(*runner).crossings().n_copies;
    runner->step({{sequence, {7}}});
    return mixed_of(*runner).crossings().n_copies - before;
  };
  const auto file = make_file();
  const auto spec = model::read_arch(*file);
  ASSERT_TRUE(spec);
  EXPECT_EQ(copies_of(*file, model::place_layers(*spec, {.n_device_layers = 0})), 0);
  for (int32_t n = 1; n <= kBlocks + 1; ++n) {
    EXPECT_EQ(copies_of(*file, model::place_layers(*spec, {.n_device_layers = n})), 1) << n;
  }
}

TEST(mixed_model, hidden_rows_are_those_of_one_side) {
  const auto file = make_file();
  const auto spec = model::read_arch(*file);
  ASSERT_TRUE(spec);
  const auto n_out = static_cast<int32_t>(kPrompt.size());
  const auto hidden = [&](std::unique_ptr<backend::Backend> backend) {
    const auto runner = run_on(*file, std::move(backend));
    runner->run(kPrompt, kPrompt.size());
    const backend::RowsView rows = runner->model().hidden(n_out);
    return std::vector<float>(rows.data, rows.data + n_out * rows.n_cols);
  };
  const std::vector<float> expected = hidden(make_fast_cpu());
  for (const backend::Placement& placement : placements_of(*spec)) {
    EXPECT_EQ(hidden(make_two_sides(placement)), expected);
  }
}

// Blocks of one step in several passes: what one pass leaves, the next one finds.
TEST(mixed_model, parts_of_a_step_go_on_from_one_another) {
  const auto file = make_file();
  const auto spec = model::read_arch(*file);
  ASSERT_TRUE(spec);
  const std::vector<int32_t> positions = {0, 1, 2, 3};
  const std::array<backend::SeqSlice, 1> slices{{{0, 4, 0}}};
  const std::array<BlockId, 1> table{2};
  const std::array<int32_t, 1> out_rows{3};
  const backend::StepBatch batch{std::span(kPrompt).first(4), positions, slices, table, 1, out_rows};
  const auto logits_in_parts = [&](std::unique_ptr<backend::Backend> made, std::vector<int32_t> ends) {
    auto loaded = model::Model::load(*file, *made, {});
    EXPECT_TRUE(loaded && (*loaded)->reserve(8, 8));
    auto kv = made->make_kv((*loaded)->kv_layout(KvType::kBf16), {4});
    int32_t first = 0;
    backend::StepTicket ticket;
    for (const int32_t end : ends) {
      ticket = (*loaded)->launch_blocks(first, end, batch, **kv);
      first = end;
    }
    const backend::LogitsView logits = made->read_logits(ticket);
    return Logits(logits.row(0).begin(), logits.row(0).end());
  };
  const Logits expected = logits_in_parts(make_fast_cpu(), {kBlocks});
  for (const backend::Placement& placement : placements_of(*spec)) {
    EXPECT_EQ(logits_in_parts(make_two_sides(placement), {0, 1, 3, 4}), expected);
  }
}

TEST(mixed_model, heads_look_where_they_look_on_one_side) {
  const auto file = make_file();
  const auto spec = model::read_arch(*file);
  ASSERT_TRUE(spec);
  const auto shares = [&](std::unique_ptr<backend::Backend> backend) {
    const auto runner = run_on(*file, std::make_unique<backend::AttentionWatch>(std::move(backend)));
    auto& watch = static_cast<backend::AttentionWatch&>(runner->backend());
    const std::array<int32_t, 2> rows{3, 9};
    watch.look_at(rows);
    runner->run(kPrompt, kPrompt.size());
    return std::array{watch.shares(3), watch.shares(9)};
  };
  const auto expected = shares(make_fast_cpu());
  EXPECT_EQ(expected[1].size(), 10u);
  for (const backend::Placement& placement : placements_of(*spec)) {
    EXPECT_EQ(shares(make_two_sides(placement)), expected);
  }
}

}  // namespace
}  // namespace candor::testing
