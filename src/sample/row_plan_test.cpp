// Choices that a device begins and the host finishes are those of the host alone.

#include "sample/row_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "platform/float_mode.h"
#include "support/choices.h"
#include "support/host_logits.h"

namespace candor::sample {
namespace {

using testing::ChoiceComparison;
using testing::HostLogits;
using testing::model_row;

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Of all cases, the share that the findings decided.
double compare_rows(const std::vector<std::vector<float>>& rows, size_t most_best = backend::kMostBest,
                    bool reaches = true) {
  const platform::ScopedFloatMode mode;
  const auto n_cols = static_cast<int32_t>(rows.front().size());
  std::vector<float> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  HostLogits device(all, n_cols, most_best);
  device.reaches = reaches;
  ChoiceComparison comparison(n_cols - 3);
  comparison.compare(all, static_cast<int32_t>(rows.size()), n_cols, device);
  EXPECT_EQ(device.n_rows_read, 0);
  return static_cast<double>(comparison.n_finished()) / comparison.n_asked();
}

TEST(row_plan, of_usual_rows_most_choices_end_with_the_best) {
  std::vector<std::vector<float>> rows;
  for (uint64_t seed = 0; seed < 8; ++seed) rows.push_back(model_row(5003, seed));
  EXPECT_GT(compare_rows(rows), 0.8);
}

TEST(row_plan, a_small_vocabulary_is_known_as_a_whole) {
  std::vector<std::vector<float>> rows;
  for (uint64_t seed = 0; seed < 8; ++seed) rows.push_back(model_row(100, seed, 1.0f));
  EXPECT_GT(compare_rows(rows), 0.8);
}

TEST(row_plan, flat_rows_ties_and_what_is_no_candidate_change_nothing) {
  std::vector<float> equal(2000, 0.5f);
  std::vector<float> few(2000, kNone);
  few[7] = few[1500] = 1.0f;
  few[8] = -2.0f;
  std::vector<float> broken = model_row(2000, 3);
  broken[1999] = std::numeric_limits<float>::quiet_NaN();  // behind the vocabulary
  std::vector<float> damaged = model_row(2000, 4);
  damaged[12] = std::numeric_limits<float>::quiet_NaN();
  compare_rows({equal, few, broken, damaged, model_row(2000, 5, 0.01f), model_row(2000, 6, 2.0f, 40),
                std::vector<float>(2000, kNone), std::vector<float>(2000, -0.0f)});
}

// What is not known is never guessed.
TEST(row_plan, where_few_are_known_what_is_decided_is_right) {
  std::vector<std::vector<float>> rows;
  for (uint64_t seed = 0; seed < 6; ++seed) rows.push_back(model_row(3000, seed, seed % 2 == 0 ? 2.0f : 0.5f));
  for (const size_t most_best : {1, 2, 7, 30}) {
    const double without = compare_rows(rows, most_best, false);
    EXPECT_GT(without, 0.05) << most_best;
    EXPECT_GT(compare_rows(rows, most_best), without) << most_best;
  }
}

TEST(row_plan, edits_of_one_row_are_not_those_of_the_next) {
  RowPlanner planner;
  RowPlan plan;
  ChainParams chain{.temperature = 0.0};
  chain.bans.biases = {{3, 1.0f}, {5, 2.0f}, {3, -0.5f}, {900, 1.0f}};
  ASSERT_TRUE(planner.plan({.chain = chain}, 2, 10, plan));
  ASSERT_EQ(plan.choice.edited.size(), 2u);
  EXPECT_EQ(plan.choice.edited[0].token, 3);
  EXPECT_EQ(plan.choice.edits[0].next, 2);
  chain.bans.biases = {{5, 4.0f}};
  ASSERT_TRUE(planner.plan({.chain = chain}, 0, 10, plan));
  ASSERT_EQ(plan.choice.edited.size(), 1u);
  EXPECT_EQ(plan.choice.edits.size(), 1u);
  EXPECT_EQ(plan.choice.edits[0].value, 4.0f);
}

}  // namespace
}  // namespace candor::sample
