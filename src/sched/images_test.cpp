// Rows of images in plans: what a step computes whole, where rows are in grids, and what the prefix cache compares.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sched/scheduler.h"

namespace candor::sched {
namespace {

SchedulerOptions image_options() {
  SchedulerOptions options;
  options.n_ctx = 128;
  options.n_blocks = 64;
  options.block_tokens = 8;
  options.max_running = 4;
  options.max_queued = 8;
  return options;
}

// Commits what was planned: each sequence that was read goes on with one token, or ends.
void commit(Scheduler& scheduler, const StepPlan& plan, bool ends) {
  static const std::array<TokenId, 1> kNext = {7};
  std::vector<Outcome> outcomes;
  for (const PlannedSlice& slice : plan.slices) {
    if (slice.n_out > 0) outcomes.push_back({slice.sequence->id, ends ? std::span<const TokenId>() : kNext, ends});
  }
  scheduler.commit(outcomes);
}

SequenceSpec spec_of(SequenceId id, int32_t n_tokens, ImageRows image) {
  SequenceSpec spec{.id = id, .prompt = std::vector<TokenId>(static_cast<size_t>(n_tokens), 3)};
  spec.images = {image};
  return spec;
}

TEST(images_in_plans, rows_that_see_one_another_are_computed_by_one_step) {
  for (const int32_t n_prefill : {1, 3, 8, 20, 64}) {
    Scheduler scheduler(image_options());
    for (SequenceId id = 1; id <= 3; ++id) ASSERT_TRUE(scheduler.add({.id = id, .prompt = {5, 6}}));
    const ImageRows image{.first = 10, .n_rows = 20, .first_key = -2, .is_seen_whole = true};
    ASSERT_TRUE(scheduler.add(spec_of(4, 50, image)));
    int n_steps_with_image = 0;
    for (int step = 0; step < 200 && scheduler.find(4)->n_pending() > 1; ++step) {
      const StepPlan& plan = scheduler.plan({.max_rows = 24, .max_prefill_rows = n_prefill});
      ASSERT_LE(plan.batch().n_rows(), 24);
      if (!plan.vector_rows.empty()) {
        ++n_steps_with_image;
        EXPECT_EQ(plan.vector_rows.size(), 20u);
        ASSERT_EQ(plan.groups.size(), 1u);
        EXPECT_EQ(plan.groups[0].n_rows, 20);
        EXPECT_EQ(plan.groups[0].first_row, plan.vector_rows[0]);
      }
      commit(scheduler, plan, false);
    }
    EXPECT_EQ(n_steps_with_image, 1) << n_prefill;
    EXPECT_EQ(scheduler.find(4)->n_pending(), 1) << n_prefill;
  }
}

TEST(images_in_plans, other_images_are_read_in_chunks_of_any_size) {
  Scheduler scheduler(image_options());
  ASSERT_TRUE(scheduler.add(spec_of(1, 50, {.first = 10, .n_rows = 20, .first_key = -2})));
  std::vector<int32_t> seen;
  while (scheduler.find(1)->n_pending() > 1) {
    const StepPlan& plan = scheduler.plan({.max_rows = 7, .max_prefill_rows = 7});
    EXPECT_TRUE(plan.groups.empty());
    for (const StepPlan::ImageRow& row : plan.image_rows) seen.push_back(row.row);
    commit(scheduler, plan, false);
  }
  ASSERT_EQ(seen.size(), 20u);
  for (int32_t i = 0; i < 20; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(images_in_plans, rows_in_a_grid_have_positions_of_three_axes) {
  Sequence sequence;
  sequence.images = {{.first = 5, .n_rows = 12, .grid_cols = 4}, {.first = 20, .n_rows = 6, .grid_cols = 2}};
  using Axes = std::array<int32_t, 3>;
  EXPECT_EQ(sequence.axes_of(4), (Axes{4, 4, 4}));
  EXPECT_EQ(sequence.axes_of(5), (Axes{5, 5, 5}));
  EXPECT_EQ(sequence.axes_of(10), (Axes{5, 6, 6}));
  EXPECT_EQ(sequence.axes_of(16), (Axes{5, 7, 8}));
  EXPECT_EQ(sequence.axes_of(17), (Axes{9, 9, 9}));
  EXPECT_EQ(sequence.axes_of(20), (Axes{12, 12, 12}));
  EXPECT_EQ(sequence.axes_of(25), (Axes{12, 14, 13}));
  EXPECT_EQ(sequence.axes_of(26), (Axes{15, 15, 15}));
}

TEST(images_in_plans, have_axes_where_any_sequence_has_a_grid) {
  Scheduler scheduler(image_options());
  ASSERT_TRUE(scheduler.add({.id = 1, .prompt = {5, 6}}));
  EXPECT_EQ(scheduler.plan({.max_rows = 64}).batch().n_axes, 0);
  commit(scheduler, scheduler.plan({.max_rows = 64}), false);
  ASSERT_TRUE(scheduler.add(spec_of(2, 10, {.first = 2, .n_rows = 4, .first_key = -2, .grid_cols = 2})));
  const backend::StepBatch batch = scheduler.plan({.max_rows = 64}).batch();
  EXPECT_EQ(batch.n_axes, 3);
  EXPECT_EQ(batch.axes.size(), 3u * static_cast<size_t>(batch.n_rows()));
}

TEST(images_in_plans, the_prefix_cache_tells_images_apart) {
  Scheduler scheduler(image_options());
  const auto read = [&](SequenceId id, TokenId first_key) {
    EXPECT_TRUE(scheduler.add(spec_of(id, 50, {.first = 10, .n_rows = 20, .first_key = first_key})));
    const StepPlan& plan = scheduler.plan({.max_rows = 64, .max_prefill_rows = 64});
    const int32_t n_cached = scheduler.find(id)->n_cached;
    commit(scheduler, plan, true);
    return n_cached;
  };
  EXPECT_EQ(read(1, -2), 0);
  EXPECT_EQ(read(2, -2), 48);
  EXPECT_EQ(read(3, -22), 8);  // the block before the image
  EXPECT_EQ(read(4, -22), 48);
}

}  // namespace
}  // namespace candor::sched
