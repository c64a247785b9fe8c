#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <vector>

#include "draft/draft_ledger.h"
#include "draft/draft_length.h"
#include "draft/ngram.h"
#include "draft/ngram_drafter.h"
#include "draft/verify.h"

namespace candor::draft {
namespace {

using Tokens = std::vector<TokenId>;

Tokens drafts_for(const Tokens& text, int32_t most, const NgramOptions& options = {}) {
  Tokens drafts;
  draft_by_ngram(text, most, options, drafts);
  return drafts;
}

TEST(ngram, what_followed_the_same_tokens_is_drafted) {
  EXPECT_EQ(drafts_for({1, 2, 3, 4, 5, 1, 2}, 3), (Tokens{3, 4, 5}));
  EXPECT_EQ(drafts_for({1, 2, 3, 4, 5, 1, 2}, 1), (Tokens{3}));
  EXPECT_EQ(drafts_for({7, 8, 7, 8}, 5), (Tokens{7, 8}));
}

TEST(ngram, the_longest_agreement_wins_and_of_equals_the_newest) {
  EXPECT_EQ(drafts_for({5, 1, 2, 9, 4, 1, 2, 8, 5, 1, 2}, 1), (Tokens{9}));
  EXPECT_EQ(drafts_for({4, 1, 2, 9, 4, 1, 2, 8, 4, 1, 2}, 1), (Tokens{8}));
}

TEST(ngram, nothing_is_drafted_where_nothing_agrees) {
  EXPECT_TRUE(drafts_for({}, 4).empty());
  EXPECT_TRUE(drafts_for({1}, 4).empty());
  EXPECT_TRUE(drafts_for({1, 2, 3, 4}, 4).empty());
  EXPECT_TRUE(drafts_for({3, 1, 2, 3}, 4).empty());  // one token alone is not enough
  EXPECT_TRUE(drafts_for({1, 2, 1, 2}, 0).empty());
  EXPECT_TRUE(drafts_for({1, 2, 3, 9, 9, 9, 9, 1, 2}, 4, {.lookback = 4}).empty());
}

// As the header says it, without any haste.
Tokens slow_drafts_for(const Tokens& text, int32_t most, int32_t lookback) {
  size_t best_n = 1;
  size_t best_end = 0;
  for (size_t end = text.size() - std::min(text.size(), static_cast<size_t>(lookback)) + 1; end < text.size(); ++end) {
    size_t n = 0;
    while (n < 5 && n < end && text[end - 1 - n] == text[text.size() - 1 - n]) ++n;
    if (n < std::max<size_t>(2, best_n)) continue;
    best_n = n;
    best_end = end;
  }
  if (best_end == 0) return {};
  const size_t n_drafts = std::min(static_cast<size_t>(most), text.size() - best_end);
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(best_end);
  return {begin, begin + static_cast<std::ptrdiff_t>(n_drafts)};
}

TEST(ngram, drafts_of_any_text_are_those_of_a_plain_search) {
  uint32_t random = 1;
  const auto below = [&](uint32_t n) { return ((random = random * 1664525u + 1013904223u) >> 16) % n; };
  int32_t n_found = 0;
  for (int i = 0; i < 3000; ++i) {
    Tokens text(2 + below(120));
    const uint32_t n_words = 2 + below(40);
    for (TokenId& token : text) token = static_cast<TokenId>(below(n_words));
    const auto lookback = static_cast<int32_t>(1 + below(150));
    const Tokens expected = slow_drafts_for(text, 6, lookback);
    ASSERT_EQ(drafts_for(text, 6, {.lookback = lookback}), expected) << i;
    n_found += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(n_found, 300);
  EXPECT_LT(n_found, 2900);
}

// A decoding whose steps cost 1, and the more the more drafts they verify.
class Decoding {
 public:
  explicit Decoding(double each, double first = 0.0) {
    costs_.plain = 1.0;
    for (size_t n = 1; n < costs_.extra.size(); ++n) costs_.extra[n] = first + each * static_cast<double>(n);
  }

  // accepted_of(n) of n drafts. What was drafted.
  template <class AcceptedOf>
  int32_t step(AcceptedOf&& accepted_of, int32_t most = kMaxDrafts) {
    DraftOffer offer = ledger_.offer(kDrafter, most, costs_);
    if (offer.n_drafts == 0) offer = ledger_.trial(kDrafter, most, costs_);
    const int32_t n = offer.n_drafts;
    const double extra = costs_.extra[static_cast<size_t>(n)];
    ledger_.pay({kDrafter, n, costs_.plain, extra});
    const int32_t n_accepted = n == 0 ? 0 : accepted_of(n);
    ledger_.record(n, n_accepted);
    time_ += costs_.plain + extra;
    n_tokens_ += 1.0 + n_accepted;
    worst_ = std::max(worst_, (time_ - costs_.plain) / n_tokens_);
    return n;
  }

  // Of the time without drafts, now and, but for one step, at the worst moment.
  double share() const { return time_ / n_tokens_; }
  double worst() const { return worst_; }

 private:
  static constexpr DraftSource kDrafter = DraftSource::kModel;

  DraftCosts costs_;
  DraftLedger ledger_;
  double time_ = 0.0;
  double n_tokens_ = 0.0;
  double worst_ = 0.0;
};

constexpr auto kAllRight = [](int32_t n) { return n; };
constexpr auto kNoneRight = [](int32_t) { return 0; };

TEST(ngram_drafter, says_at_once_how_many_it_has_and_makes_no_more) {
  NgramDrafter ngrams;
  Drafter& drafter = ngrams;
  const Tokens text = {1, 2, 3, 4, 1, 2};
  std::array<DraftRequest, 2> requests;
  requests[0] = {.sequence = 1, .text = text, .n_drafts = 3};
  requests[1] = {.sequence = 2, .text = std::span(text).first(4), .n_drafts = 3};
  EXPECT_EQ(drafter.begin(requests[0]), 3);
  EXPECT_EQ(drafter.begin(requests[1]), 0);
  drafter.propose(requests, nullptr);
  EXPECT_EQ(requests[0].drafts, (Tokens{3, 4, 1}));
  EXPECT_TRUE(requests[1].drafts.empty());
  EXPECT_FALSE(drafter.needs_masks());
  EXPECT_TRUE(drafter.is_free());
  EXPECT_EQ(drafter.n_behind(1, text.size()), 1u);
}

TEST(draft_length, free_drafts_are_made_in_full_and_dear_ones_never) {
  Decoding free(0.0);
  for (int i = 0; i < 20; ++i) free.step(kAllRight, 8);
  EXPECT_EQ(free.step(kAllRight, 8), 8);
  EXPECT_EQ(free.step(kAllRight, 3), 3);
  EXPECT_EQ(free.step(kAllRight, 0), 0);
  Decoding dear(2.0);
  int32_t n_drafts = 0;
  for (int i = 0; i < 2000; ++i) n_drafts += dear.step(kAllRight);
  EXPECT_LT(n_drafts, 40);
}

TEST(draft_length, a_first_draft_waits_until_what_it_costs_beyond_one_step_is_a_hundredth_of_the_time) {
  Decoding decoding(0.1, 1.4);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(decoding.step(kAllRight), 0) << i;
  EXPECT_EQ(decoding.step(kAllRight), 1);
  EXPECT_GT(Decoding(0.1).step(kAllRight), 0);
}

TEST(draft_length, accepted_drafts_soon_pay_for_longer_ones) {
  Decoding decoding(0.1);
  for (int i = 0; i < 40; ++i) decoding.step(kAllRight);
  EXPECT_EQ(decoding.step(kAllRight), kMaxDrafts);
  EXPECT_LT(decoding.share(), 0.4);
}

TEST(draft_length, rejected_drafts_end_the_drafting_and_trials_grow_rare) {
  Decoding decoding(0.1);
  int32_t n_trials = 0;
  for (int step = 0; step < 10000; ++step) {
    const int32_t n = decoding.step(kNoneRight);
    if (step > 1000) n_trials += n;
  }
  EXPECT_GT(n_trials, 2);
  EXPECT_LT(n_trials, 60);
  int32_t longest = 0;
  for (int step = 0; step < 2000; ++step) longest = std::max(longest, decoding.step(kAllRight));
  EXPECT_EQ(longest, kMaxDrafts);  // better times are found out
}

TEST(draft_length, whichever_drafts_are_accepted_no_moment_is_a_step_and_2_percent_behind) {
  uint32_t random = 1;
  int32_t n_calls = 0;
  const std::function<int32_t(int32_t)> patterns[] = {
      kAllRight,
      kNoneRight,
      [&](int32_t n) { return ++n_calls % 2 == 0 ? n : 0; },
      [&](int32_t n) { return ++n_calls / 40 % 2 == 0 ? n : 0; },
      [](int32_t n) { return n == 1 ? 1 : 0; },  // as long as it is a trial
      [](int32_t n) { return n / 2; },
      [&](int32_t n) { return static_cast<int32_t>((random = random * 1664525u + 1013904223u) >> 16) % (n + 1); },
  };
  for (const double each : {0.01, 0.1, 0.3, 0.9}) {
    for (const double first : {0.0, 0.5, 5.0}) {
      for (size_t i = 0; i < std::size(patterns); ++i) {
        Decoding decoding(each, first);
        for (int step = 0; step < 3000; ++step) decoding.step(patterns[i]);
        EXPECT_LE(decoding.worst(), 1.0 / 0.98) << "pattern " << i << ", " << first << " + " << each << " a draft";
      }
    }
  }
}

TEST(draft_length, a_text_that_is_read_once_is_spread_over_the_steps_that_draft) {
  DraftCosts costs{.plain = 1.0};
  for (size_t n = 1; n < costs.extra.size(); ++n) costs.extra[n] = 2.0 + 0.1 * static_cast<double>(n);
  const DraftLength length;
  EXPECT_EQ(length.choose(kMaxDrafts, costs, 10.0).n_drafts, 0);
  costs.once = 2.0;
  EXPECT_GT(length.choose(kMaxDrafts, costs, 10.0).n_drafts, 0);
  EXPECT_EQ(length.choose(kMaxDrafts, costs, 2.0).n_drafts, 0);  // but it is paid for at once
}

TEST(draft_length, guesses_are_judged_once_by_as_much_as_the_text_says) {
  DraftLength length;
  EXPECT_FALSE(length.take_news());
  const double before = length.acceptance();
  length.guess(Tokens{1, 2, 3});
  length.judge(Tokens{1, 2});
  EXPECT_GT(length.acceptance(), before);
  EXPECT_TRUE(length.take_news());
  length.judge(Tokens{3});
  EXPECT_FALSE(length.take_news());
  const double right = length.acceptance();
  length.guess(Tokens{1, 2, 3});
  length.judge(Tokens{2, 2, 3});
  EXPECT_LT(length.acceptance(), right);
  const double wrong = length.acceptance();
  length.guess({});
  length.judge(Tokens{1});
  length.guess(Tokens{1});
  length.judge({});
  EXPECT_EQ(length.acceptance(), wrong);
}

TEST(draft_ledger, a_step_is_recorded_for_who_drafted_and_once) {
  DraftLedger ledger;
  const double before = ledger.of(DraftSource::kNgram).acceptance();
  ledger.pay({DraftSource::kNgram, 4, 1.0, 0.5});
  const DraftedStep step = ledger.record(4, 4);
  EXPECT_EQ(step.source, DraftSource::kNgram);
  EXPECT_EQ(step.n_drafts, 4);
  EXPECT_GT(ledger.of(DraftSource::kNgram).acceptance(), before);
  EXPECT_EQ(ledger.of(DraftSource::kMtp).acceptance(), before);
  EXPECT_EQ(ledger.record(0, 0).n_drafts, 0);  // a step that nobody asked drafts for
}

TEST(draft_ledger, guesses_are_judged_by_the_output_behind_them) {
  DraftLedger ledger;
  DraftLength& ngrams = ledger.of(DraftSource::kNgram);
  const Tokens text = {9, 8, 5, 6, 7};
  ledger.judge(std::span(text).first(2), 1);
  ngrams.guess(Tokens{5, 6});
  const double before = ngrams.acceptance();
  ledger.judge(std::span(text).first(2), 1);  // nothing new
  EXPECT_EQ(ngrams.acceptance(), before);
  ledger.judge(text, 4);
  EXPECT_GT(ngrams.acceptance(), before);
  ngrams.guess(Tokens{1});
  ledger.judge(std::span(text).first(1), 9);  // its front was dropped, and more than is left
  EXPECT_FALSE(ngrams.take_news() && ngrams.acceptance() < before);
}

TEST(verify, drafts_are_accepted_up_to_the_first_that_differs) {
  const Tokens target = {4, 5, 6, 7};
  const auto run = [&](const Tokens& drafts, Tokens& picked) {
    return verify(drafts, [&](int32_t i) {
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
