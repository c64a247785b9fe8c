#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sample/params.h"

namespace candor::sample {
namespace {

const std::vector<float> kLogits = {2.0f, -1.5f, 0.3f, 4.2f, -0.8f};

Pick picked(const PickRequest& request) {
  Sampler sampler;
  Pick pick;
  EXPECT_TRUE(sampler.pick(request, pick).has_value());
  return pick;
}

TEST(sampler, greedy_takes_the_best_and_of_equals_the_lowest_id) {
  PickRequest request{.logits = kLogits};
  request.chain.temperature = 0.0f;
  EXPECT_EQ(picked(request).token, 3);
  const std::vector<float> tied = {1.0f, 7.0f, 7.0f};
  request.logits = tied;
  EXPECT_EQ(picked(request).token, 1);
}

TEST(sampler, the_same_seed_choice_and_position_give_the_same_token_whatever_came_before) {
  Sampler used;
  Pick pick;
  PickRequest request{.logits = kLogits};
  request.chain.temperature = 3.0f;
  for (uint64_t position = 0; position < 100; ++position) {
    request.key = {.seed = 9, .choice = 0, .position = position};
    ASSERT_TRUE(used.pick(request, pick).has_value());
    EXPECT_EQ(pick.token, picked(request).token);
  }
}

TEST(sampler, logprobs_are_those_of_the_raw_logits) {
  PickRequest request{.logits = kLogits, .n_logprobs = 2};
  request.chain.temperature = 0.1f;
  request.chain.top_k = 1;
  const Pick pick = picked(request);
  double total = 0.0;
  for (const float logit : kLogits) total += std::exp(static_cast<double>(logit));
  EXPECT_NEAR(pick.logprob, 4.2 - std::log(total), 1e-6);
  ASSERT_EQ(pick.top.size(), 2u);
  EXPECT_EQ(pick.top[0].token, 3);
  EXPECT_EQ(pick.top[0].value, pick.logprob);
  EXPECT_EQ(pick.top[1].token, 0);
  EXPECT_NEAR(pick.top[1].value, 2.0 - std::log(total), 1e-6);
}

TEST(sampler, logprobs_of_impossible_tokens_are_finite) {
  const std::vector<float> logits = {1.0f, -std::numeric_limits<float>::infinity()};
  PickRequest request{.logits = logits, .n_logprobs = 20};
  const Pick pick = picked(request);
  ASSERT_EQ(pick.top.size(), 2u);
  EXPECT_EQ(pick.top[1].value, kNoLogprob);
}

TEST(sampler, a_mask_leaves_only_what_it_allows_and_does_not_change_logprobs) {
  constrain::TokenMask mask(5);
  mask.allow(1);
  mask.allow(4);
  PickRequest request{.logits = kLogits, .mask = &mask, .n_logprobs = 1};
  request.chain.temperature = 0.0f;
  const Pick pick = picked(request);
  EXPECT_EQ(pick.token, 4);
  EXPECT_EQ(pick.top[0].token, 3);
  EXPECT_LT(pick.logprob, pick.top[0].value);

  const constrain::TokenMask nothing(5);
  request.mask = &nothing;
  Sampler sampler;
  Pick unused;
  EXPECT_FALSE(sampler.pick(request, unused).has_value());
}

TEST(sampler, broken_logits_are_an_error_in_every_mode) {
  const std::vector<float> logits = {1.0f, std::nanf(""), 2.0f};
  for (const float temperature : {0.0f, 1.0f}) {
    for (const int32_t n_logprobs : {-1, 3}) {
      PickRequest request{.logits = logits, .n_logprobs = n_logprobs};
      request.chain.temperature = temperature;
      Sampler sampler;
      Pick pick;
      EXPECT_FALSE(sampler.pick(request, pick).has_value());
    }
  }
}

TEST(params, values_out_of_range_are_refused_with_field_value_and_range) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    RawParams raw;
    std::string_view field;
  };
  std::vector<Case> cases;
  for (const double value : {-1.0, 1e308, kNan, 100.5}) cases.push_back({{.temperature = value}, "temperature"});
  for (const int64_t value : {int64_t{-1}, int64_t{-2147483648}}) cases.push_back({{.top_k = value}, "top_k"});
  for (const double value : {-0.1, 1.5, kNan, 1e308}) cases.push_back({{.top_p = value}, "top_p"});
  for (const double value : {-1.0, 1.01, kNan}) cases.push_back({{.min_p = value}, "min_p"});
  for (const Case& c : cases) {
    const auto params = make_chain_params(c.raw);
    ASSERT_FALSE(params.has_value()) << c.field;
    EXPECT_EQ(params.error().field, c.field);
    EXPECT_EQ(params.error().error.kind, ErrorKind::kInvalidInput);
    EXPECT_NE(params.error().error.message.find("expected"), std::string::npos);
  }
}

TEST(params, the_ends_of_every_range_are_allowed) {
  for (const RawParams& raw :
       {RawParams{.temperature = 0.0}, RawParams{.temperature = 100.0}, RawParams{.top_k = int64_t{1} << 40},
        RawParams{.top_p = 0.0}, RawParams{.min_p = 1.0}}) {
    EXPECT_TRUE(make_chain_params(raw).has_value());
  }
  EXPECT_TRUE(check_range("max_tokens", 1, 1, 5).has_value());
  EXPECT_FALSE(check_range("max_tokens", 0, 1, 5).has_value());
}

}  // namespace
}  // namespace candor::sample
