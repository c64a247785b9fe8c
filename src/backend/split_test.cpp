#include "backend/split.h"

#include <gtest/gtest.h>

#include <string>

namespace candor::backend {
namespace {

// Every query head has one owner, and each rank's heads share its K/V heads evenly and read no other.
TEST(split, every_head_has_one_rank_which_keeps_its_keys) {
  for (const int32_t n_kv_heads : {1, 2, 3, 8, 24}) {
    for (const int32_t group : {1, 3, 4, 8}) {
      const HeadCounts heads{n_kv_heads * group, n_kv_heads};
      for (int32_t n_ranks = 1; n_ranks <= heads.n_heads; ++n_ranks) {
        const std::string what =
            std::to_string(n_kv_heads) + " x " + std::to_string(group) + " on " + std::to_string(n_ranks);
        const auto shares = share_heads(heads, n_ranks);
        ASSERT_EQ(shares.size(), static_cast<size_t>(n_ranks)) << what;
        int32_t next = 0;
        for (const HeadShare& share : shares) {
          EXPECT_EQ(share.first_head, next) << what;
          next += share.n_heads;
          ASSERT_GE(share.n_heads, 1) << what;
          EXPECT_EQ(share.n_heads % share.n_kv_heads, 0) << what;
          const int32_t own_group = share.n_heads / share.n_kv_heads;
          for (int32_t i = 0; i < share.n_heads; ++i) {
            EXPECT_EQ((share.first_head + i) / group, share.first_kv_head + i / own_group) << what;
          }
        }
        EXPECT_EQ(next, heads.n_heads) << what;
      }
    }
  }
}

TEST(split, shares_are_as_even_as_can_be) {
  std::vector<int32_t> n_heads;
  for (const HeadShare& share : share_heads({24, 24}, 5)) n_heads.push_back(share.n_heads);
  EXPECT_EQ(n_heads, (std::vector<int32_t>{5, 5, 5, 5, 4}));
  EXPECT_EQ(share_outputs(64, 3), (std::vector<int32_t>{0, 32, 48, 64}));
}

TEST(split, outputs_are_shared_out_in_panels) {
  EXPECT_EQ(share_outputs(100, 2), (std::vector<int32_t>{0, 64, 100}));
  EXPECT_EQ(share_outputs(16, 3), (std::vector<int32_t>{0, 16, 16, 16}));
  EXPECT_EQ(share_outputs(5, 2), (std::vector<int32_t>{0, 5, 5}));
  EXPECT_EQ(share_outputs(128, 1), (std::vector<int32_t>{0, 128}));
}

}  // namespace
}  // namespace candor::backend
