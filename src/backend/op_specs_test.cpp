#include "backend/op_specs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "backend/routing.h"

namespace candor::backend {
namespace {

TEST(alibi_slopes, follow_the_paper_for_powers_of_two_and_for_other_counts) {
  EXPECT_EQ(alibi_slopes(4, 8.0f), (std::vector<float>{0.25f, 0.0625f, 0.015625f, 0.00390625f}));
  const std::vector<float> six = alibi_slopes(6, 8.0f);
  ASSERT_EQ(six.size(), 6u);
  EXPECT_FLOAT_EQ(six[3], 0.00390625f);
  EXPECT_FLOAT_EQ(six[4], 0.5f);
  EXPECT_FLOAT_EQ(six[5], 0.125f);
}

TEST(routing, sends_a_row_to_its_highest_scores_and_the_lower_id_among_equals) {
  Routing routing;
  routing.begin({.n_experts = 4, .n_used = 2});
  routing.add_row(7, std::array{1.0f, 3.0f, 3.0f, 3.0f});
  EXPECT_TRUE(routing.visits(0).empty());
  ASSERT_EQ(routing.visits(1).size(), 1u);
  EXPECT_EQ(routing.visits(1)[0].row, 7);
  EXPECT_EQ(routing.visits(1)[0].weight, 0.5f);
  EXPECT_EQ(routing.visits(2)[0].weight, 0.5f);
  EXPECT_TRUE(routing.visits(3).empty());
}

TEST(routing, weights_are_a_softmax_over_the_chosen_or_over_all) {
  Routing routing;
  const std::array scores{0.0f, std::log(2.0f), std::log(5.0f)};
  routing.begin({.n_experts = 3, .n_used = 2, .renormalise = true});
  routing.add_row(0, scores);
  EXPECT_NEAR(routing.visits(2)[0].weight, 5.0f / 7.0f, 1e-6f);
  routing.begin({.n_experts = 3, .n_used = 2, .renormalise = false});
  routing.add_row(0, scores);
  EXPECT_NEAR(routing.visits(2)[0].weight, 5.0f / 8.0f, 1e-6f);
  EXPECT_NEAR(routing.visits(1)[0].weight, 2.0f / 8.0f, 1e-6f);
}

TEST(routing, a_score_that_is_no_number_is_chosen_last) {
  Routing routing;
  routing.begin({.n_experts = 3, .n_used = 1});
  routing.add_row(0, std::array{std::numeric_limits<float>::quiet_NaN(), -5.0f, -6.0f});
  EXPECT_EQ(routing.visits(1).size(), 1u);
}

// Two groups of three, the first with the best expert, the second with the best two.
TEST(routing, chooses_out_of_the_best_group_alone) {
  Routing routing;
  const std::array scores{4.0f, 0.0f, 0.1f, 3.0f, 3.5f, -1.0f};
  MoeSpec spec{.n_experts = 6, .n_used = 2, .renormalise = false, .n_groups = 2, .n_groups_used = 1};
  routing.begin(spec);
  routing.add_row(0, scores);
  EXPECT_EQ(routing.visits(0).size(), 1u);
  EXPECT_EQ(routing.visits(2).size(), 1u);
  spec.share = ExpertShare::kSigmoid;
  spec.n_group_best = 2;
  routing.begin(spec);
  routing.add_row(0, scores);
  EXPECT_EQ(routing.visits(3).size(), 1u);
  EXPECT_EQ(routing.visits(4).size(), 1u);
  EXPECT_NEAR(routing.visits(3)[0].weight, 1.0f / (1.0f + std::exp(-3.0f)), 1e-6f);
}

TEST(routing, a_bias_counts_for_the_choice_and_not_for_the_weights) {
  Routing routing;
  const std::array scores{1.0f, 0.0f, -1.0f};
  const std::array bias{-1.0f, 0.0f, 0.5f};
  for (const ExpertShare share : {ExpertShare::kSigmoid, ExpertShare::kSoftmax}) {
    routing.begin({.n_experts = 3, .n_used = 2, .share = share, .scale = 2.5f, .has_choice_bias = true});
    routing.add_row(0, scores, {bias.data()});
    EXPECT_TRUE(routing.visits(0).empty());
    const auto shared = [&](float x) { return share == ExpertShare::kSigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x); };
    const float sum = shared(0.0f) + shared(-1.0f);
    EXPECT_NEAR(routing.visits(1)[0].weight, 2.5f * shared(0.0f) / sum, 1e-5f);
    EXPECT_NEAR(routing.visits(2)[0].weight, 2.5f * shared(-1.0f) / sum, 1e-5f);
  }
}

}  // namespace
}  // namespace candor::backend
