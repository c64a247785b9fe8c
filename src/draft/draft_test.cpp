#include <gtest/gtest.h>

#include <vector>

#include "draft/draft_length.h"
#include "draft/ngram.h"
#include "draft/verify.h"

namespace candor::draft {
namespace {

using Tokens = std::vector<TokenId>;

Tokens guesses_for(const Tokens& text, int32_t most, const NgramOptions& options = {}) {
  Tokens guesses;
  guess_by_ngram(text, most, options, guesses);
  return guesses;
}

TEST(ngram, what_followed_the_same_tokens_is_guessed) {
  EXPECT_EQ(guesses_for({1, 2, 3, 4, 5, 1, 2}, 3), (Tokens{3, 4, 5}));
  EXPECT_EQ(guesses_for({1, 2, 3, 4, 5, 1, 2}, 1), (Tokens{3}));
  EXPECT_EQ(guesses_for({7, 8, 7, 8}, 5), (Tokens{7, 8}));
}

TEST(ngram, the_longest_agreement_wins_and_of_equals_the_newest) {
  EXPECT_EQ(guesses_for({5, 1, 2, 9, 4, 1, 2, 8, 5, 1, 2}, 1), (Tokens{9}));
  EXPECT_EQ(guesses_for({4, 1, 2, 9, 4, 1, 2, 8, 4, 1, 2}, 1), (Tokens{8}));
}

TEST(ngram, nothing_is_guessed_where_nothing_agrees) {
  EXPECT_TRUE(guesses_for({}, 4).empty());
  EXPECT_TRUE(guesses_for({1}, 4).empty());
  EXPECT_TRUE(guesses_for({1, 2, 3, 4}, 4).empty());
  EXPECT_TRUE(guesses_for({3, 1, 2, 3}, 4).empty());  // one token alone is not enough
  EXPECT_TRUE(guesses_for({1, 2, 1, 2}, 0).empty());
  EXPECT_TRUE(guesses_for({1, 2, 3, 9, 9, 9, 9, 1, 2}, 4, {.lookback = 4}).empty());
}

TEST(draft_length, free_rows_are_guessed_in_full_and_dear_ones_not_at_all) {
  DraftLength length;
  for (int i = 0; i < 20; ++i) length.record(4, 4);
  EXPECT_EQ(length.choose(8, [](int32_t) { return 1.0; }), 8);
  EXPECT_EQ(length.choose(3, [](int32_t) { return 1.0; }), 3);
  EXPECT_EQ(length.choose(8, [](int32_t n) { return static_cast<double>(n); }), 0);
  EXPECT_EQ(length.choose(0, [](int32_t) { return 1.0; }), 0);
}

TEST(draft_length, wrong_guesses_end_the_guessing_and_trials_grow_rare) {
  DraftLength length;
  const auto cost = [](int32_t n) { return 1.0 + 0.1 * (n - 1); };
  EXPECT_GT(length.choose(8, cost), 0);
  int32_t n_trials = 0;
  for (int step = 0; step < 10000; ++step) {
    const int32_t n = length.choose(8, cost);
    if (step > 100 && n > 0) ++n_trials;
    length.record(n, 0);
  }
  EXPECT_GT(n_trials, 2);
  EXPECT_LT(n_trials, 40);
  for (int i = 0; i < 30; ++i) length.record(1, 1);
  EXPECT_GT(length.choose(8, cost), 2);
}

TEST(verify, guesses_hold_up_to_the_first_that_differs) {
  const Tokens target = {4, 5, 6, 7};
  const auto run = [&](const Tokens& guesses, Tokens& picked) {
    return verify(guesses, [&](int32_t i) {
      picked.push_back(target[static_cast<size_t>(i)]);
      return picked.back();
    });
  };
  Tokens picked;
  EXPECT_EQ(run({4, 5, 9}, picked), 2);
  EXPECT_EQ(picked, (Tokens{4, 5, 6}));
  picked.clear();
  EXPECT_EQ(run({4, 5, 6}, picked), 3);
  EXPECT_EQ(picked, target);
  picked.clear();
  EXPECT_EQ(run({}, picked), 0);
  EXPECT_EQ(picked, (Tokens{4}));
  EXPECT_EQ(verify(Tokens{4, 5}, [](int32_t) { return kNoToken; }), 0);  // the output ended
}

}  // namespace
}  // namespace candor::draft
