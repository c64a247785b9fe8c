#include "sample/beam_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sample/exact_log.h"

namespace candor::sample {
namespace {

using Text = std::vector<TokenId>;
constexpr int32_t kVocab = 4;
constexpr TokenId kEnd = 0;
constexpr int64_t kLongest = 4;

// A model of four tokens: what comes next depends on the whole text.
std::vector<Continuation> row_of(const Text& text, uint32_t seed) {
  for (const TokenId token : text) seed = seed * 31 + static_cast<uint32_t>(token) + 1;
  std::mt19937 random(seed);
  std::vector<double> weights(kVocab);
  double total = 0.0;
  for (double& weight : weights) total += weight = 1.0 + static_cast<double>(random() % 1000);
  std::vector<Continuation> row;
  for (TokenId token = 0; token < kVocab; ++token) {
    const float logprob = static_cast<float>(log_f64(weights[static_cast<size_t>(token)] / total));
    row.push_back({token, logprob, logprob, token == kEnd});
  }
  std::ranges::stable_sort(row, std::greater(), &Continuation::score);
  return row;
}

struct Answer {
  double score = 0.0;
  Text text;
};

void enumerate(const Text& text, double score, const BeamParams& params, uint32_t seed, std::vector<Answer>& all) {
  for (const Continuation& next : row_of(text, seed)) {
    Text longer = text;
    longer.push_back(next.token);
    const double sum = score + static_cast<double>(next.score);
    const bool is_whole = next.ends || static_cast<int64_t>(longer.size()) == kLongest;
    if (!is_whole) {
      enumerate(longer, sum, params, seed, all);
      continue;
    }
    all.push_back({sum / pow_f64(static_cast<double>(longer.size()), params.asked.length_penalty), longer});
  }
}

std::vector<Answer> search(const BeamParams& params, uint32_t seed) {
  BeamScorer search(params);
  std::vector<Text> texts = {{}};
  while (!search.is_over()) {
    for (int32_t i = 0; i < search.n_live(); ++i) search.set_row(i, row_of(texts[static_cast<size_t>(i)], seed), {});
    std::vector<Text> grown;
    for (const Survivor& survivor : search.select()) {
      grown.push_back(texts[static_cast<size_t>(survivor.parent)]);
      grown.back().push_back(survivor.token);
    }
    texts = std::move(grown);
    search.settle();
  }
  std::vector<Answer> answers;
  for (const BeamAnswer& best : search.best()) {
    answers.push_back({best.score, {}});
    for (const BeamNode* node : search.path(best.node)) answers.back().text.push_back(node->token);
  }
  return answers;
}

BeamParams params_of(int32_t width, double length_penalty, bool early_stopping, int32_t n_best) {
  return {.asked = {.width = width, .length_penalty = length_penalty, .early_stopping = early_stopping},
          .max_length = kLongest,
          .n_best = n_best};
}

TEST(beam_scorer, that_is_wide_enough_finds_what_trying_every_text_finds) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    for (const double penalty : {1.0, 0.0, 2.0, -0.5}) {
      const BeamParams params = params_of(256, penalty, false, 8);
      std::vector<Answer> all;
      enumerate({}, 0.0, params, seed, all);
      std::ranges::stable_sort(all, std::greater(), &Answer::score);
      const auto found = search(params, seed);
      ASSERT_EQ(found.size(), 8u);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].score, all[i].score) << seed << ", penalty " << penalty << ", rank " << i;
        EXPECT_EQ(found[i].text, all[i].text) << seed << ", penalty " << penalty << ", rank " << i;
      }
    }
  }
}

TEST(beam_scorer, of_width_one_takes_the_likeliest_token_each_time) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    Text greedy;
    do {
      greedy.push_back(row_of(greedy, seed).front().token);
    } while (greedy.back() != kEnd && static_cast<int64_t>(greedy.size()) < kLongest);
    for (const double penalty : {1.0, -3.0}) EXPECT_EQ(search(params_of(1, penalty, true, 1), seed)[0].text, greedy);
  }
}

TEST(beam_scorer, worked_example_of_three_beams) {
  // 0.82 x 0.60, 0.07 x 0.90, 0.82 x 0.07.
  const auto row = [](std::initializer_list<double> probabilities) {
    std::vector<Continuation> next;
    for (const double p : probabilities) {
      const float logprob = static_cast<float>(log_f64(p));
      next.push_back({static_cast<TokenId>(next.size() + 1), logprob, logprob, false});
    }
    return next;
  };
  BeamScorer search({.asked = {.width = 3, .length_penalty = 0.0}, .max_length = 2, .n_best = 3});
  search.set_row(0, row({0.82, 0.07}), {});
  ASSERT_EQ(search.select().size(), 2u);
  search.settle();
  search.set_row(0, row({0.60, 0.07}), {});
  search.set_row(1, row({0.90}), {});
  search.select();
  search.settle();
  const auto best = search.best();
  ASSERT_EQ(best.size(), 3u);
  EXPECT_NEAR(exp_f64(best[0].score), 0.492, 5e-4);
  EXPECT_NEAR(exp_f64(best[1].score), 0.063, 5e-4);
  EXPECT_NEAR(exp_f64(best[2].score), 0.057, 5e-4);
}

TEST(beam_scorer, wider_searches_find_no_worse_answers_when_they_search_to_the_end) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const double narrow = search(params_of(1, 1.0, false, 1), seed)[0].score;
    EXPECT_GE(search(params_of(256, 1.0, false, 1), seed)[0].score, narrow) << seed;
  }
}

TEST(beam_scorer, texts_that_their_owner_ends_or_drops_go_no_further) {
  BeamScorer search({.asked = {.width = 2}, .n_best = 2});
  search.set_row(0, row_of({}, 5), {});
  ASSERT_EQ(search.select().size(), 2u);
  search.end_survivor(0);
  search.drop_survivor(1);
  search.settle();
  EXPECT_TRUE(search.is_over());
  ASSERT_EQ(search.best().size(), 1u);
  EXPECT_EQ(search.best()[0].end, BeamEnd::kByOwner);
}

TEST(beam_scorer, a_dead_end_ends_the_search_without_an_answer) {
  BeamScorer search({.asked = {.width = 2}, .n_best = 1});
  search.set_row(0, {}, {});
  search.select();
  search.settle();
  EXPECT_TRUE(search.is_over());
  EXPECT_TRUE(search.best().empty());
}

}  // namespace
}  // namespace candor::sample
