#include "serve/http/fair_budget.h"

#include <gtest/gtest.h>

namespace candor::http {
namespace {

TEST(fair_budget, one_of_many_keys_never_takes_what_the_others_need_to_begin) {
  FairBudget budget(100, 3);
  std::vector<FairBudget::Share> first;
  const auto take = [&budget](int32_t key, std::vector<FairBudget::Share>& shares) {
    shares.push_back(budget.share_of(key));
    if (shares.back().try_grow(1)) return true;
    shares.pop_back();
    return false;
  };
  while (take(0, first)) {
  }
  EXPECT_EQ(first.size(), 75u);
  std::vector<FairBudget::Share> second;
  while (take(1, second)) {
  }
  EXPECT_EQ(second.size(), 8u);  // its part of the reserve
  std::vector<FairBudget::Share> third;
  while (take(2, third)) {
  }
  EXPECT_EQ(third.size(), 8u);
  first.resize(10);
  while (take(1, second)) {
  }
  EXPECT_EQ(second.size(), 33u);  // an even share of three
  first.clear();
  third.clear();
  while (take(1, second)) {
  }
  EXPECT_EQ(second.size(), 75u);
}

TEST(fair_budget, without_keys_all_of_it_is_for_everybody) {
  FairBudget budget(10, 0);
  FairBudget::Share share = budget.share_of(-1);
  EXPECT_TRUE(share.try_grow(9));
  EXPECT_TRUE(share.try_grow(1));
  EXPECT_FALSE(share.try_grow(1));
  EXPECT_EQ(FairBudget(10, 1).most_per_key(), 10);
  EXPECT_EQ(FairBudget(10, 2).most_per_key(), 8);
  EXPECT_EQ(FairBudget(10, 2, 3).most_per_key(), 3);
  EXPECT_EQ(FairBudget(1, 2).most_per_key(), 1);
}

TEST(fair_budget, what_is_inside_may_exceed_it_and_everything_is_given_back) {
  FairBudget budget(10, 2);
  {
    FairBudget::Share share = budget.share_of(0);
    EXPECT_TRUE(share.try_grow(2));
    share.grow(20);
    EXPECT_TRUE(share.is_exceeded());
    EXPECT_FALSE(budget.has_room(1, 1));
    share.resize(5);
    EXPECT_TRUE(budget.has_room(1, 5));
    EXPECT_FALSE(budget.has_room(1, 6));
    FairBudget::Share moved = std::move(share);
    EXPECT_EQ(moved.amount(), 5);
    EXPECT_EQ(budget.used(), 5);
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(fair_budget, a_key_may_have_a_limit_of_its_own) {
  FairBudget budget(100, 1, 1);
  FairBudget::Share share = budget.share_of(0);
  EXPECT_TRUE(share.try_grow(1));
  EXPECT_FALSE(budget.has_room(0, 1));
}

}  // namespace
}  // namespace candor::http
