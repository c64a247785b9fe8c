#include "sample/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/exact_math.h"
#include "base/philox.h"
#include "sample/exact_log.h"

namespace candor::sample {
namespace {

using Logits = std::vector<float>;

const kernels::KernelTable& kChainTable = *kernels::runnable_tables().back();
const Logits kFive = {2.0f, -1.5f, 0.3f, 4.2f, -0.8f};
constexpr double kPrinted = 0.0005;  // the worked numbers have three decimals

Candidates loaded(const Logits& logits) {
  Candidates candidates(kChainTable);
  EXPECT_TRUE(candidates.load(logits).has_value());
  return candidates;
}

void run(Candidates& candidates, const ChainParams& params, const History& history = {}, uint32_t word = 0) {
  ChainScratch scratch;
  const auto done = run_chain(candidates, {params, history, word}, scratch);
  EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().message);
}

std::vector<TokenId> tokens_of(Candidates& candidates) {
  std::vector<TokenId> tokens;
  for (size_t rank = 0; rank < candidates.count(); ++rank) tokens.push_back(candidates.at(rank).token);
  return tokens;
}

double probability(Candidates& candidates, TokenId token) {
  const double total = static_cast<double>(candidates.weigh());
  for (size_t rank = 0; rank < candidates.count(); ++rank) {
    if (candidates.at(rank).token == token) return static_cast<double>(candidates.at(rank).weight) / total;
  }
  return 0.0;
}

void expect_probabilities(const Logits& logits, float temperature, const std::vector<double>& expected,
                          double bound = kPrinted) {
  Candidates candidates = loaded(logits);
  candidates.scale(temperature);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(probability(candidates, static_cast<TokenId>(i)), expected[i], bound) << "token " << i;
  }
}

Logits logs(std::initializer_list<double> probabilities) {
  Logits logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

TEST(chain, softmax_and_temperature_give_the_worked_numbers) {
  expect_probabilities(kFive, 1.0f, {0.097, 0.003, 0.018, 0.876, 0.006});
  expect_probabilities(kFive, 0.7f, {0.041, 0.000, 0.004, 0.954, 0.001});
  expect_probabilities(kFive, 2.0f, {0.206, 0.036, 0.088, 0.619, 0.051});
}

TEST(chain, temperature_sharpens_and_flattens_given_probabilities) {
  expect_probabilities(logs({0.7, 0.2, 0.1}), 0.5f, {0.907, 0.074, 0.019});
  expect_probabilities(logs({0.7, 0.2, 0.1}), 2.0f, {0.523, 0.279, 0.198});
}

TEST(chain, ratios_follow_the_temperature) {
  const Logits logits = {8.7f, 6.2f, 5.9f, 4.3f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    Candidates candidates = loaded(logits);
    candidates.scale(temperature);
    for (size_t i = 1; i < logits.size(); ++i) {
      const double ratio = probability(candidates, 0) / probability(candidates, static_cast<TokenId>(i));
      const double expected = std::exp(static_cast<double>(logits[0] - logits[i]) / static_cast<double>(temperature));
      EXPECT_NEAR(ratio / expected, 1.0, 2e-6);
    }
  }
}

TEST(chain, the_first_list_of_the_notes_sharpens_at_every_temperature) {
  const Logits logits = {3.0f, 2.0f, 1.0f, 0.5f, 0.1f};
  expect_probabilities(logits, 0.1f, {0.99995, 0.00005, 0.0, 0.0, 0.0}, 1e-5);
  for (const float temperature : {0.1f, 0.5f, 1.0f, 2.0f}) {
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit / temperature));
    std::vector<double> expected;
    for (const float logit : logits) expected.push_back(std::exp(static_cast<double>(logit / temperature)) / sum);
    expect_probabilities(logits, temperature, expected, 1e-6);
  }
}

TEST(chain, the_second_list_of_the_notes_is_cut_to_three_and_to_one) {
  const Logits logits = {8, 2, 2, 1.5f, 0.5f, 0.3f, -1, -2, -5, -8, -10};
  Candidates by_k = loaded(logits);
  keep_top_k(by_k, 3);
  EXPECT_EQ(tokens_of(by_k), (std::vector<TokenId>{0, 1, 2}));
  Candidates by_p = loaded(logits);
  keep_top_p(by_p, 0.9);
  EXPECT_EQ(tokens_of(by_p), (std::vector<TokenId>{0}));
}

TEST(chain, top_k_two_keeps_the_two_best_and_renormalises) {
  Candidates candidates = loaded(kFive);
  keep_top_k(candidates, 2);
  EXPECT_EQ(tokens_of(candidates), (std::vector<TokenId>{3, 0}));
  EXPECT_NEAR(probability(candidates, 3), 0.900, kPrinted);
  EXPECT_NEAR(probability(candidates, 0), 0.100, kPrinted);
}

TEST(chain, top_p_keeps_the_token_that_crosses_p) {
  Candidates candidates = loaded(kFive);
  keep_top_p(candidates, 0.9);  // 0.876 does not reach it, 0.973 does
  EXPECT_EQ(tokens_of(candidates), (std::vector<TokenId>{3, 0}));
  Candidates one = loaded(kFive);
  keep_top_p(one, 0.87);
  EXPECT_EQ(tokens_of(one), (std::vector<TokenId>{3}));
  Candidates none = loaded(kFive);
  keep_top_p(none, 0.0);
  EXPECT_EQ(none.count(), 1u);
}

TEST(chain, min_p_cuts_below_its_share_of_the_best) {
  Candidates candidates = loaded(logs({0.82, 0.0821, 0.0819, 0.016}));
  keep_min_p(candidates, 0.1);  // the border is 0.082
  EXPECT_EQ(tokens_of(candidates), (std::vector<TokenId>{0, 1}));
  Candidates best = loaded(kFive);
  keep_min_p(best, 1.0);
  EXPECT_EQ(tokens_of(best), (std::vector<TokenId>{3}));
}

TEST(chain, ties_at_the_border_of_top_k_go_to_the_lower_id) {
  Candidates candidates = loaded({1, 5, 1, 1, 5, 1});
  keep_top_k(candidates, 4);
  EXPECT_EQ(tokens_of(candidates), (std::vector<TokenId>{1, 4, 0, 2}));
}

TEST(chain, logits_that_are_not_numbers_are_an_error_and_minus_infinity_is_never_drawn) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Candidates candidates(kChainTable);
  EXPECT_FALSE(candidates.load(Logits{1, std::nanf(""), 2}).has_value());
  EXPECT_FALSE(candidates.load(Logits{1, kInf}).has_value());
  EXPECT_FALSE(candidates.load(Logits{-kInf, -kInf}).has_value());
  EXPECT_FALSE(candidates.load(Logits{}).has_value());
  ASSERT_TRUE(candidates.load(Logits{-kInf, 1, -kInf}).has_value());
  run(candidates, {});
  for (const uint32_t word : {0u, 0x80000000u, 0xffffffffu}) EXPECT_EQ(draw(candidates, word), 1);
}

TEST(chain, a_draw_walks_the_survivors_in_order) {
  Candidates candidates = loaded(logs({0.2, 0.5, 0.3}));
  EXPECT_EQ(draw(candidates, 0), 1);
  EXPECT_EQ(draw(candidates, static_cast<uint32_t>(0.49 * 4294967296.0)), 1);
  EXPECT_EQ(draw(candidates, static_cast<uint32_t>(0.51 * 4294967296.0)), 2);
  EXPECT_EQ(draw(candidates, static_cast<uint32_t>(0.79 * 4294967296.0)), 2);
  EXPECT_EQ(draw(candidates, static_cast<uint32_t>(0.81 * 4294967296.0)), 0);
  EXPECT_EQ(draw(candidates, 0xffffffffu), 0);
}

TEST(chain, draws_follow_the_probabilities) {
  Candidates candidates = loaded(kFive);
  std::vector<int> counts(kFive.size());
  constexpr int kDraws = 200000;
  for (uint64_t position = 0; position < kDraws; ++position) {
    ++counts[static_cast<size_t>(draw(candidates, random_words(42, 0, position)[0]))];
  }
  double chi_square = 0.0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probability(candidates, static_cast<TokenId>(i)) * kDraws;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 18.5);  // 4 degrees of freedom: exceeded once in 1000 honest seeds
}

// The chain in doubles with a full sort, in the words of its definition.
std::vector<TokenId> naive_chain(const Logits& logits, const ChainParams& params) {
  const float greatest = *std::ranges::max_element(logits);
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  Logits scaled;
  for (const float logit : logits) scaled.push_back((logit - greatest) / static_cast<float>(params.temperature));
  const auto value = [&](TokenId token) { return scaled[static_cast<size_t>(token)]; };
  std::ranges::stable_sort(order, [&](TokenId a, TokenId b) { return value(a) > value(b); });
  if (params.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(params.top_k)));
  double total = 0.0;
  for (const TokenId token : order) total += std::exp(static_cast<double>(value(token)));
  double sum = 0.0;
  size_t n = 0;
  while (n < order.size() && sum < params.top_p * total) sum += std::exp(static_cast<double>(value(order[n++])));
  if (params.top_p < 1.0) order.resize(n);
  std::erase_if(order, [&](TokenId token) { return std::exp(static_cast<double>(value(token))) < params.min_p; });
  return order;
}

TEST(chain, random_cases_keep_what_a_full_sort_in_doubles_keeps) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  for (int i = 0; i < 1000; ++i) {
    Logits logits(1 + random() % 3000);
    const bool has_ties = i % 4 == 0;
    for (float& logit : logits) logit = has_ties ? std::round(normal(random)) : normal(random);
    ChainParams params;
    params.temperature = 0.2 + static_cast<double>(random() % 20) * 0.1;
    params.top_k = i % 3 == 0 ? static_cast<int32_t>(1 + random() % 200) : 0;
    params.top_p = i % 2 == 0 ? 0.01 * static_cast<double>(1 + random() % 99) : 1.0;
    params.min_p = i % 5 == 0 ? 0.0101 : 0.0;
    Candidates candidates = loaded(logits);
    run(candidates, params);
    const auto expected = naive_chain(logits, params);
    const auto kept = tokens_of(candidates);
    // Sums of another precision may move the border by one token.
    ASSERT_LE(std::max(kept.size(), expected.size()) - std::min(kept.size(), expected.size()), 1u) << "case " << i;
    const size_t n = std::min(kept.size(), expected.size());
    ASSERT_TRUE(std::equal(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(n), expected.begin())) << i;
  }
}

TEST(exact_log, agrees_with_the_library) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const double x =
        std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1p-52, static_cast<int>(random() % 80) - 40);
    EXPECT_NEAR(log_f64(x), std::log(x), 1e-15 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  EXPECT_EQ(log_f64(1.0), 0.0);
}

TEST(penalties, the_worked_number_holds) {
  Candidates candidates = loaded({3.0f, 1.0f});
  const std::vector<TokenId> text = {0, 0, 0, 0};
  TokenCounts counts;
  apply_penalties(candidates, {text, 4}, {.frequency = 0.1, .presence = 0.2}, counts);
  EXPECT_NEAR(*candidates.find(0), 2.4f, 1e-6f);
  EXPECT_EQ(*candidates.find(1), 1.0f);
}

TEST(penalties, repetition_divides_positive_logits_and_multiplies_negative_ones_of_prompt_and_output) {
  Candidates candidates = loaded({3.0f, -2.0f, 1.0f, 5.0f});
  const std::vector<TokenId> text = {0, 1, 0, 3};
  TokenCounts counts;
  apply_penalties(candidates, {text, 1}, {.repetition = 2.0}, counts);
  EXPECT_EQ(*candidates.find(0), 1.5f);
  EXPECT_EQ(*candidates.find(1), -4.0f);
  EXPECT_EQ(*candidates.find(2), 1.0f);
  EXPECT_EQ(*candidates.find(3), 2.5f);
}

TEST(penalties, frequency_and_presence_count_the_output_within_the_window) {
  const std::vector<TokenId> text = {0, 0, 1, 2, 1};
  TokenCounts counts;
  Candidates all = loaded({0.0f, 0.0f, 0.0f});
  apply_penalties(all, {text, 3}, {.frequency = 1.0}, counts);
  EXPECT_EQ(*all.find(0), 0.0f);
  EXPECT_EQ(*all.find(1), -2.0f);
  EXPECT_EQ(*all.find(2), -1.0f);
  Candidates last = loaded({0.0f, 0.0f, 0.0f});
  apply_penalties(last, {text, 3}, {.frequency = 1.0, .window = 1}, counts);
  EXPECT_EQ(*last.find(1), -1.0f);
  EXPECT_EQ(*last.find(2), 0.0f);
}

TEST(dry, a_token_that_would_go_on_with_a_repetition_is_lowered_by_its_length) {
  const std::vector<TokenId> text = {1, 2, 3, 4, 0, 1, 2, 3};
  DryScratch scratch;
  Candidates candidates = loaded(Logits(6, 0.0f));
  apply_dry(candidates, {text, 0}, {.multiplier = 1.0, .base = 2.0, .allowed_length = 2}, scratch);
  EXPECT_EQ(*candidates.find(4), -2.0f);  // three tokens repeated, one above the allowed length
  EXPECT_EQ(*candidates.find(5), 0.0f);
  Candidates broken = loaded(Logits(6, 0.0f));
  apply_dry(broken, {text, 0}, {.multiplier = 1.0, .base = 2.0, .allowed_length = 2, .breakers = {2}}, scratch);
  EXPECT_EQ(*broken.find(4), 0.0f);
}

TEST(dry, a_very_long_repetition_stays_finite) {
  const std::vector<TokenId> text(20000, 1);
  DryScratch scratch;
  Candidates candidates = loaded({5.0f, 5.0f});
  apply_dry(candidates, {text, 0}, {.multiplier = 100.0, .base = 10.0}, scratch);
  ASSERT_TRUE(candidates.settle().has_value());
  EXPECT_EQ(candidates.at(0).token, 0);
  EXPECT_TRUE(std::isfinite(*candidates.find(1)));
}

TEST(bans, each_rule_takes_out_what_it_names) {
  const std::vector<TokenId> text = {0, 1, 2, 0, 1};
  BanParams params;
  params.no_repeat_ngram = 3;
  params.bad_words = {{1, 3}, {4}, {0, 5}};
  params.banned = {6};
  params.min_tokens = 3;
  params.ends = {7};
  Candidates candidates = loaded(Logits(9, 1.0f));
  apply_bans(candidates, {text, 2}, params);
  ASSERT_TRUE(candidates.settle().has_value());
  EXPECT_EQ(tokens_of(candidates), (std::vector<TokenId>{0, 1, 5, 8}));
  Candidates later = loaded(Logits(9, 1.0f));
  params.allowed.emplace(9);
  for (const TokenId token : {6, 7, 8}) params.allowed->allow(token);
  apply_bans(later, {text, 3}, params);
  ASSERT_TRUE(later.settle().has_value());
  EXPECT_EQ(tokens_of(later), (std::vector<TokenId>{7, 8}));
}

TEST(bans, nothing_left_is_an_error_that_says_so) {
  Candidates candidates = loaded({1.0f, 2.0f});
  BanParams params;
  params.banned = {0, 1};
  apply_bans(candidates, {}, params);
  const auto settled = candidates.settle();
  ASSERT_FALSE(settled.has_value());
  EXPECT_EQ(settled.error().kind, ErrorKind::kInvalidInput);
}

TEST(chain, xtc_happens_by_the_second_word_and_keeps_the_least_of_the_top) {
  ChainParams params;
  params.xtc_probability = 0.5;
  params.xtc_threshold = 0.25;
  Candidates hit = loaded(logs({0.4, 0.3, 0.26, 0.04}));
  run(hit, params, {}, 0x7fffffffu);
  EXPECT_EQ(tokens_of(hit), (std::vector<TokenId>{2, 3}));
  Candidates missed = loaded(logs({0.4, 0.3, 0.26, 0.04}));
  run(missed, params, {}, 0x80000000u);
  EXPECT_EQ(missed.count(), 4u);
  Candidates one = loaded(logs({0.9, 0.06, 0.04}));
  run(one, params, {}, 0);
  EXPECT_EQ(one.count(), 3u);
}

TEST(chain, typical_sampling_may_leave_the_likeliest_out) {
  Candidates candidates = loaded(logs({0.4, 0.12, 0.12, 0.12, 0.12, 0.12}));
  keep_typical(candidates, 0.5);
  EXPECT_EQ(tokens_of(candidates), (std::vector<TokenId>{1, 2, 3, 4, 5}));
}

TEST(chain, dynamic_temperature_is_low_where_the_model_is_certain) {
  ChainParams params;
  params.temperature_range = 0.5;
  Candidates flat = loaded({1.0f, 1.0f, 1.0f, 1.0f});
  scale_dynamically(flat, params);
  Candidates sharp = loaded({30.0f, 0.0f, 0.0f, 0.0f});
  scale_dynamically(sharp, params);
  EXPECT_NEAR(*sharp.find(1), -30.0f / 0.5f, 1e-3f);
}

TEST(chain, the_order_of_stages_is_the_one_given) {
  const Logits logits = logs({0.5, 0.3, 0.2});
  ChainParams params;
  params.temperature = 0.2;
  params.top_p = 0.75;
  Candidates sharpened_first = loaded(logits);
  run(sharpened_first, params);
  EXPECT_EQ(sharpened_first.count(), 1u);
  params.stages = {Stage::kTopP, Stage::kTemperature};
  Candidates cut_first = loaded(logits);
  run(cut_first, params);
  EXPECT_EQ(cut_first.count(), 2u);
}

TEST(chain, a_wide_flat_row_is_cut_and_drawn_as_a_full_sort_would) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 0.5f);
  Logits logits(20000);
  for (float& logit : logits) logit = std::round(normal(random) * 1000.0f) / 1000.0f;  // with ties
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](TokenId a, TokenId b) { return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]; });
  for (const size_t k : {1u, 7u, 100u, 150u, 151u, 5000u, 19999u}) {
    Candidates candidates = loaded(logits);
    keep_top_k(candidates, static_cast<int32_t>(k));
    ASSERT_EQ(candidates.count(), k);
    ASSERT_TRUE(
        std::equal(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), tokens_of(candidates).begin()));
  }
  Candidates all = loaded(logits);
  const uint64_t total = all.weigh();
  std::vector<uint64_t> sums;
  for (const TokenId token : order) {
    const float best = logits[static_cast<size_t>(order[0])];
    sums.push_back(weight_of(exp_f32(logits[static_cast<size_t>(token)] - best)) + (sums.empty() ? 0 : sums.back()));
  }
  ASSERT_EQ(sums.back(), total);
  for (uint64_t i = 0; i < 500; ++i) {
    const uint64_t target = total / 500 * i;
    const auto expected = std::ranges::upper_bound(sums, target) - sums.begin();
    ASSERT_EQ(all.at_weight(target).token, order[static_cast<size_t>(expected)]) << i;
  }
  for (const double share : {0.1, 0.5, 0.9, 0.999}) {
    Candidates nucleus = loaded(logits);
    keep_top_p(nucleus, share);
    const auto reached = [&](uint64_t sum) { return static_cast<double>(sum) < share * static_cast<double>(total); };
    ASSERT_EQ(nucleus.count(), static_cast<size_t>(std::ranges::count_if(sums, reached)) + 1);
  }
}

TEST(exact_power, agrees_with_the_library) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  for (int i = 0; i < 100000; ++i) {
    const double x = unit(random);
    const double y = 10.0 * unit(random);
    EXPECT_NEAR(pow_f64(x, y), std::pow(x, y), 1e-13) << x << " " << y;
  }
  EXPECT_EQ(pow_f64(0.0, 2.0), 0.0);
  EXPECT_EQ(pow_f64(1.0, 3.0), 1.0);
}

}  // namespace
}  // namespace candor::sample
