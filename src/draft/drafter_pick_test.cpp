#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "draft/draft_ledger.h"
#include "draft/drafter_pick.h"

namespace candor::draft {
namespace {

constexpr TokenId kRight = 1;
constexpr TokenId kWrong = 2;

DraftCosts costs_with(double each) {
  DraftCosts costs{.plain = 1.0};
  for (size_t n = 1; n < costs.extra.size(); ++n) costs.extra[n] = each * static_cast<double>(n);
  return costs;
}

// Has so many drafts, of which the text accepts `n_right`.
class FakeDrafter final : public Drafter {
 public:
  FakeDrafter(DraftSource source, double each, bool is_free)
      : source_(source), costs_(costs_with(each)), is_free_(is_free) {}

  bool needs_masks() const override { return false; }
  bool is_free() const override { return is_free_; }
  size_t n_behind(SequenceId, size_t) const override { return 1; }
  int32_t begin(DraftRequest& request) override {
    EXPECT_TRUE(request.drafts.empty());
    const int32_t n = std::min(request.n_drafts, n_has);
    if (is_free_) request.drafts.assign(static_cast<size_t>(n), kRight);
    return n;
  }
  void propose(std::span<DraftRequest>, constrain::MaskWorker*) override {}
  void forget() noexcept override {}

  Candidate candidate() { return {source_, this, &costs_}; }
  DraftSource source() const { return source_; }
  const DraftCosts& costs() const { return costs_; }

  int32_t n_has = kMaxDrafts;
  std::function<int32_t(int32_t)> n_right = [](int32_t) { return 0; };
  int32_t n_steps = 0;  // in which it drafted

 private:
  DraftSource source_;
  DraftCosts costs_;
  bool is_free_;
};

const auto kAll = [](int32_t n) { return n; };
const auto kNone = [](int32_t) { return 0; };

// A decoding with several drafters.
class Company {
 public:
  FakeDrafter& add(DraftSource source, double each, bool is_free = false) {
    return drafters_.emplace_back(source, each, is_free);
  }
  // Who drafted; nullptr: nobody.
  const FakeDrafter* step(int32_t most = kMaxDrafts) {
    std::vector<Candidate> candidates;
    for (FakeDrafter& drafter : drafters_) candidates.push_back(drafter.candidate());
    ledger_.judge(text_, static_cast<int64_t>(text_.size()));
    DraftRequest request{.text = text_};
    const DrafterPick pick = pick_drafter(candidates, most, ledger_, request);
    EXPECT_LE(pick.n_drafts, std::max(0, most));
    FakeDrafter* who = pick.candidate == nullptr ? nullptr : &find(pick.candidate->source);
    const double extra = who == nullptr ? 0.0 : who->costs().extra[static_cast<size_t>(pick.n_drafts)];
    ledger_.pay({who == nullptr ? DraftSource::kNgram : who->source(), pick.n_drafts, 1.0, extra});
    const int32_t n_accepted = who == nullptr ? 0 : who->n_right(pick.n_drafts);
    ledger_.record(pick.n_drafts, n_accepted);
    if (who != nullptr) ++who->n_steps;
    say(n_accepted + 1);
    time_ += 1.0 + extra;
    worst_ = std::max(worst_, (time_ - 1.0) / static_cast<double>(text_.size()));
    return who;
  }
  void steps(int n) {
    for (FakeDrafter& drafter : drafters_) drafter.n_steps = 0;
    for (int i = 0; i < n; ++i) step();
  }
  double time_of_token() const { return time_ / static_cast<double>(text_.size()); }
  double worst() const { return worst_; }

 private:
  FakeDrafter& find(DraftSource source) { return *std::ranges::find(drafters_, source, &FakeDrafter::source); }
  // What a free drafter guesses is right where it would be accepted.
  void say(int32_t n) {
    const auto free = std::ranges::find_if(drafters_, [](const FakeDrafter& one) { return one.is_free(); });
    const bool is_right = free != drafters_.end() && free->n_right(1) == 1;
    text_.insert(text_.end(), static_cast<size_t>(n), is_right ? kRight : kWrong);
  }

  std::deque<FakeDrafter> drafters_;
  DraftLedger ledger_;
  std::vector<TokenId> text_;
  double time_ = 0.0;
  double worst_ = 0.0;
};

TEST(pick_drafter, who_is_right_drafts_whichever_it_is) {
  for (const bool is_free_right : {false, true}) {
    Company company;
    FakeDrafter& ngrams = company.add(DraftSource::kNgram, 0.1, true);
    FakeDrafter& head = company.add(DraftSource::kMtp, 0.1);
    ngrams.n_right = is_free_right ? std::function<int32_t(int32_t)>(kAll) : kNone;
    head.n_right = is_free_right ? std::function<int32_t(int32_t)>(kNone) : kAll;
    company.steps(50);
    company.steps(500);
    EXPECT_GE((is_free_right ? ngrams : head).n_steps, 480) << is_free_right;
    EXPECT_LE((is_free_right ? head : ngrams).n_steps, 20) << is_free_right;
    EXPECT_LT(company.time_of_token(), 0.3);
  }
}

TEST(pick_drafter, of_two_that_are_right_the_cheaper_one_drafts) {
  Company company;
  FakeDrafter& model = company.add(DraftSource::kModel, 0.3);
  FakeDrafter& head = company.add(DraftSource::kEagle, 0.1);
  model.n_right = head.n_right = kAll;
  company.steps(40);
  company.steps(500);
  EXPECT_GE(head.n_steps, 480);
  EXPECT_GT(head.n_steps, 20 * model.n_steps);
}

TEST(pick_drafter, nobody_drafts_where_nobody_is_right) {
  Company company;
  const FakeDrafter& ngrams = company.add(DraftSource::kNgram, 0.1, true);
  const FakeDrafter& head = company.add(DraftSource::kMtp, 0.1);
  company.steps(100);
  company.steps(1000);
  EXPECT_EQ(ngrams.n_steps, 0);  // judged without a trial
  EXPECT_LT(head.n_steps, 60);
  EXPECT_LT(company.worst(), 1.0 / 0.98);
}

TEST(pick_drafter, what_a_free_drafter_has_counts) {
  Company company;
  FakeDrafter& ngrams = company.add(DraftSource::kNgram, 0.05, true);
  FakeDrafter& head = company.add(DraftSource::kMtp, 0.1);
  ngrams.n_right = head.n_right = kAll;
  ngrams.n_has = 1;
  company.steps(40);
  company.steps(100);
  EXPECT_EQ(ngrams.n_steps, 0);
  ngrams.n_has = kMaxDrafts;
  company.steps(100);
  EXPECT_GE(ngrams.n_steps, 90);
  ngrams.n_has = 0;
  company.steps(100);
  EXPECT_EQ(ngrams.n_steps, 0);
  EXPECT_EQ(head.n_steps, 100);
}

TEST(pick_drafter, a_free_drafter_that_becomes_right_is_noticed_while_another_drafts) {
  Company company;
  FakeDrafter& ngrams = company.add(DraftSource::kNgram, 0.02, true);
  FakeDrafter& head = company.add(DraftSource::kMtp, 0.2);
  head.n_right = [](int32_t n) { return std::min(n, 2); };
  company.steps(300);
  EXPECT_LE(ngrams.n_steps, 5);
  EXPECT_GE(head.n_steps, 290);
  ngrams.n_right = kAll;
  company.steps(20);
  EXPECT_GE(ngrams.n_steps, 10);
  ngrams.n_right = kNone;
  company.steps(60);
  EXPECT_GE(head.n_steps, 20);
}

TEST(pick_drafter, a_trial_takes_the_place_of_a_better_drafter_only_where_it_could_gain_more) {
  Company company;
  FakeDrafter& ngrams = company.add(DraftSource::kNgram, 0.01, true);
  FakeDrafter& model = company.add(DraftSource::kModel, 0.5);  // at best twice as fast
  ngrams.n_right = kAll;
  company.steps(2000);
  EXPECT_EQ(model.n_steps, 0);
  ngrams.n_right = [](int32_t n) { return std::min(n, 1); };  // now it is not quite that fast
  ngrams.n_has = 1;
  FakeDrafter& head = company.add(DraftSource::kMtp, 0.01);
  company.steps(2000);
  EXPECT_GT(head.n_steps, 3);
  EXPECT_GT(ngrams.n_steps, 1800);
  head.n_right = kAll;
  company.steps(3000);
  EXPECT_GT(head.n_steps, ngrams.n_steps);
}

TEST(pick_drafter, gives_no_more_than_there_is_room_for) {
  Company company;
  company.add(DraftSource::kNgram, 0.0, true).n_right = kAll;
  company.add(DraftSource::kModel, 0.0).n_right = kAll;
  for (const int32_t most : {0, 1, 3, 0, 15}) company.step(most);
  DraftLedger ledger;
  DraftRequest request;
  EXPECT_EQ(pick_drafter({}, kMaxDrafts, ledger, request).candidate, nullptr);
}

TEST(pick_drafter, whoever_drafts_no_moment_is_a_step_and_2_percent_behind) {
  uint32_t random = 1;
  const auto at_random = [&](int32_t n) {
    return static_cast<int32_t>((random = random * 1664525u + 1013904223u) >> 16) % (n + 1);
  };
  int32_t n_calls = 0;
  const std::function<int32_t(int32_t)> patterns[] = {kAll, kNone, at_random,
                                                      [&](int32_t n) { return ++n_calls / 40 % 2 == 0 ? n : 0; },
                                                      [](int32_t n) { return n == 1 ? 1 : 0; }};
  for (const double each : {0.01, 0.1, 0.9}) {
    for (const auto& first : patterns) {
      for (const auto& second : patterns) {
        Company company;
        company.add(DraftSource::kNgram, each / 2, true).n_right = first;
        company.add(DraftSource::kMtp, each).n_right = second;
        company.add(DraftSource::kModel, 2 * each).n_right = first;
        company.steps(1500);
        EXPECT_LE(company.worst(), 1.0 / 0.98) << each;
      }
    }
  }
}

}  // namespace
}  // namespace candor::draft
