#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "candor/sampling_table.h"
#include "sample/params.h"

namespace candor::sample {
namespace {

const kernels::KernelTable& kSamplerTable = *kernels::runnable_tables().back();
const std::vector<float> kLogits = {2.0f, -1.5f, 0.3f, 4.2f, -0.8f};

Pick picked(const PickRequest& request) {
  Sampler sampler(kSamplerTable);
  Pick pick;
  EXPECT_TRUE(sampler.pick(request, pick).has_value());
  return pick;
}

TEST(sampler, greedy_takes_the_best_and_of_equals_the_lowest_id) {
  ChainParams chain;
  PickRequest request{.logits = kLogits, .chain = chain};
  chain.temperature = 0.0;
  EXPECT_EQ(picked(request).token, 3);
  const std::vector<float> tied = {1.0f, 7.0f, 7.0f};
  request.logits = tied;
  EXPECT_EQ(picked(request).token, 1);
}

TEST(sampler, the_same_seed_choice_and_position_give_the_same_token_whatever_came_before) {
  Sampler used(kSamplerTable);
  Pick pick;
  ChainParams chain;
  PickRequest request{.logits = kLogits, .chain = chain};
  chain.temperature = 3.0;
  for (uint64_t position = 0; position < 100; ++position) {
    request.key = {.seed = 9, .choice = 0, .position = position};
    ASSERT_TRUE(used.pick(request, pick).has_value());
    EXPECT_EQ(pick.token, picked(request).token);
  }
}

TEST(sampler, logprobs_are_those_of_the_raw_logits) {
  ChainParams chain;
  PickRequest request{.logits = kLogits, .chain = chain, .n_logprobs = 2};
  chain.temperature = 0.1;
  chain.top_k = 1;
  const Pick pick = picked(request);
  double total = 0.0;
  for (const float logit : kLogits) total += std::exp(static_cast<double>(logit));
  EXPECT_NEAR(pick.logprob, 4.2 - std::log(total), 1e-6);
  ASSERT_EQ(pick.top.size(), 2u);
  EXPECT_EQ(pick.top[0].token, 3);
  EXPECT_EQ(pick.top[0].logprob, pick.logprob);
  EXPECT_EQ(pick.top[1].token, 0);
  EXPECT_NEAR(pick.top[1].logprob, 2.0 - std::log(total), 1e-6);
}

TEST(sampler, impossible_tokens_are_not_listed) {
  const std::vector<float> logits = {1.0f, -std::numeric_limits<float>::infinity()};
  ChainParams chain;
  PickRequest request{.logits = logits, .chain = chain, .n_logprobs = 20};
  const Pick pick = picked(request);
  ASSERT_EQ(pick.top.size(), 1u);
  EXPECT_EQ(pick.top[0].token, 0);
}

TEST(sampler, a_mask_leaves_only_what_it_allows_and_does_not_change_logprobs) {
  constrain::TokenMask mask(5);
  mask.allow(1);
  mask.allow(4);
  ChainParams chain;
  PickRequest request{.logits = kLogits, .chain = chain, .mask = &mask, .n_logprobs = 1};
  chain.temperature = 0.0;
  const Pick pick = picked(request);
  EXPECT_EQ(pick.token, 4);
  EXPECT_EQ(pick.top[0].token, 3);
  EXPECT_LT(pick.logprob, pick.top[0].logprob);

  const constrain::TokenMask nothing(5);
  request.mask = &nothing;
  Sampler sampler(kSamplerTable);
  Pick unused;
  EXPECT_FALSE(sampler.pick(request, unused).has_value());
}

TEST(sampler, logprobs_after_the_chain_are_those_of_what_was_drawn_from) {
  ChainParams chain;
  chain.top_k = 2;
  PickRequest request{.logits = kLogits, .chain = chain, .n_logprobs = 5};
  request.logprobs_of = LogprobsOf::kChain;
  const Pick pick = picked(request);
  ASSERT_EQ(pick.top.size(), 2u);
  EXPECT_NEAR(std::exp(static_cast<double>(pick.top[0].logprob)), 0.900, 0.0005);
  EXPECT_NEAR(std::exp(static_cast<double>(pick.top[1].logprob)), 0.100, 0.0005);
  chain.temperature = 0.0;
  EXPECT_EQ(picked(request).logprob, 0.0f);
}

TEST(sampler, penalties_and_bans_hold_for_greedy_choices_too) {
  ChainParams chain;
  chain.temperature = 0.0;
  chain.top_p = 0.5;
  chain.bans.banned = {3};
  EXPECT_EQ(picked({.logits = kLogits, .chain = chain}).token, 0);
  const std::vector<TokenId> text = {0, 0, 0};
  chain.penalties.frequency = 1.0;
  EXPECT_EQ(picked({.logits = kLogits, .chain = chain, .history = {text, 3}}).token, 2);
}

TEST(sampler, broken_logits_are_an_error_in_every_mode) {
  const std::vector<float> logits = {1.0f, std::nanf(""), 2.0f};
  for (const double temperature : {0.0, 1.0}) {
    for (const int32_t n_logprobs : {-1, 3}) {
      ChainParams chain;
      PickRequest request{.logits = logits, .chain = chain, .n_logprobs = n_logprobs};
      chain.temperature = temperature;
      Sampler sampler(kSamplerTable);
      Pick pick;
      EXPECT_FALSE(sampler.pick(request, pick).has_value());
    }
  }
}

TEST(sampler, all_kernels_give_the_same_token_and_the_same_bits_of_its_logprob) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = 8.0f * std::sin(static_cast<float>(i * i));
  ChainParams chain;
  chain.top_p = 0.9;
  for (uint64_t position = 0; position < 20; ++position) {
    const PickRequest request{.logits = logits, .chain = chain, .key = {.position = position}, .n_logprobs = 3};
    const Pick wanted = picked(request);
    for (const kernels::KernelTable* table : kernels::runnable_tables()) {
      Sampler sampler(*table);
      Pick pick;
      ASSERT_TRUE(sampler.pick(request, pick).has_value());
      EXPECT_EQ(pick.token, wanted.token) << table->name;
      EXPECT_EQ(pick.logprob, wanted.logprob) << table->name;
    }
  }
}

TEST(params, every_number_out_of_its_range_is_refused_with_field_value_and_range) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto refused = [](std::string_view field, const SamplingParams& sampling) {
    const auto params = make_chain_params(sampling);
    ASSERT_FALSE(params.has_value()) << field;
    EXPECT_EQ(params.error().field, field);
    EXPECT_EQ(params.error().kind, ErrorKind::kInvalidInput);
    EXPECT_NE(params.error().message.find("expected"), std::string::npos);
  };
  for (const SamplingNumber& number : kSamplingNumbers) {
    SamplingParams sampling;
    if (const auto* count = std::get_if<int64_t SamplingParams::*>(&number.member)) {
      for (const int64_t value :
           {int64_t{-2}, int64_t{1} << 31, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
        sampling.**count = value;
        refused(number.name, sampling);
      }
      continue;
    }
    for (const double value :
         {-2.5, number.most + 0.001, 2147483648.0, 9223372036854775808.0, 1e308, kInf, -kInf, kNan}) {
      sampling.*std::get<double SamplingParams::*>(number.member) = value;
      refused(number.name, sampling);
    }
  }
}

TEST(params, an_order_of_stages_is_checked) {
  SamplingParams sampling;
  for (const auto& order : std::vector<std::vector<std::string>>{{"top_q"}, {"top_p", "top_p"}, {""}}) {
    sampling.samplers = order;
    EXPECT_FALSE(make_chain_params(sampling).has_value());
  }
  sampling.samplers = {"top_p"};
  EXPECT_TRUE(make_chain_params(sampling).has_value());
  sampling.top_k = 3;  // on, but not in the order
  EXPECT_FALSE(make_chain_params(sampling).has_value());
}

TEST(params, the_ends_of_every_range_are_allowed) {
  for (const SamplingNumber& number : kSamplingNumbers) {
    for (const double end : {number.least, number.most}) {
      SamplingParams sampling;
      if (const auto* count = std::get_if<int64_t SamplingParams::*>(&number.member)) {
        sampling.**count = static_cast<int64_t>(end);
      } else {
        sampling.*std::get<double SamplingParams::*>(number.member) = end;
      }
      EXPECT_TRUE(make_chain_params(sampling).has_value()) << number.name << " " << end;
    }
  }
  EXPECT_TRUE(check_range("max_tokens", 1, 1, 5).has_value());
  EXPECT_FALSE(check_range("max_tokens", 0, 1, 5).has_value());
}

}  // namespace
}  // namespace candor::sample
