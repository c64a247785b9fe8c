#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace candor::kv {
namespace {

TEST(block_pool, releasing_a_shared_block_keeps_it_until_the_last_owner) {
  BlockPool pool(2);
  const BlockId block = pool.allocate()->block;
  pool.retain(block);
  pool.release(block);
  EXPECT_EQ(pool.n_used(), 1);
  pool.release(block);
  EXPECT_EQ(pool.n_used(), 0);
  EXPECT_EQ(pool.n_free(), 2);
}

TEST(block_pool, an_empty_pool_gives_nothing) {
  BlockPool pool(1);
  EXPECT_TRUE(pool.allocate().has_value());
  EXPECT_FALSE(pool.allocate().has_value());
  EXPECT_FALSE(BlockPool(0).allocate().has_value());
}

TEST(block_pool, cached_blocks_are_taken_back_oldest_release_first) {
  BlockPool pool(3);
  for (BlockId block = 0; block < 3; ++block) {
    ASSERT_EQ(pool.allocate()->block, block);
    pool.set_cacheable(block);
  }
  for (const BlockId block : {1, 2, 0}) pool.release(block);
  EXPECT_EQ(pool.n_cached(), 3);
  pool.retain(1);  // used again: now the youngest when released
  pool.release(1);
  for (const BlockId expected : {2, 0, 1}) {
    const auto allocation = pool.allocate();
    EXPECT_EQ(allocation->block, expected);
    EXPECT_TRUE(allocation->was_cached);
  }
}

// The pool as one would write it without caring for speed.
struct NaivePool {
  std::vector<int> owners;
  std::vector<bool> cacheable;
  std::deque<BlockId> cached;

  int count_free() const { return static_cast<int>(std::ranges::count(owners, 0)) - static_cast<int>(cached.size()); }
  void release(BlockId block) {
    const size_t i = static_cast<size_t>(block);
    if (--owners[i] == 0 && cacheable[i]) cached.push_back(block);
  }
  void retain(BlockId block) {
    if (owners[static_cast<size_t>(block)]++ == 0) std::erase(cached, block);
  }
};

class PoolPair {
 public:
  explicit PoolPair(int32_t n)
      : pool(n), naive{std::vector<int>(static_cast<size_t>(n)), std::vector<bool>(static_cast<size_t>(n)), {}} {}

  void allocate() {
    const auto allocation = pool.allocate();
    ASSERT_EQ(allocation.has_value(), naive.count_free() > 0 || !naive.cached.empty());
    if (!allocation) return;
    const size_t i = static_cast<size_t>(allocation->block);
    ASSERT_EQ(naive.owners[i], 0);
    ASSERT_EQ(allocation->was_cached, naive.count_free() == 0);
    if (allocation->was_cached) {
      ASSERT_EQ(allocation->block, naive.cached.front());
      naive.cached.pop_front();
    }
    naive.owners[i] = 1;
    naive.cacheable[i] = false;
  }
  void touch(BlockId block, unsigned action) {
    const size_t i = static_cast<size_t>(block);
    const bool is_cached = std::ranges::count(naive.cached, block) > 0;
    if (action == 0 && (naive.owners[i] > 0 || is_cached)) {
      pool.retain(block);
      naive.retain(block);
    } else if (action == 1 && naive.owners[i] > 0) {
      pool.set_cacheable(block);
      naive.cacheable[i] = true;
    } else if (action >= 2 && naive.owners[i] > 0) {
      pool.release(block);
      naive.release(block);
    }
  }
  void compare() const {
    ASSERT_EQ(pool.n_free(), naive.count_free());
    ASSERT_EQ(pool.n_cached(), static_cast<int>(naive.cached.size()));
    ASSERT_EQ(pool.n_used() + pool.n_cached() + pool.n_free(), pool.n_blocks());
    for (BlockId block = 0; block < pool.n_blocks(); ++block) {
      ASSERT_EQ(pool.n_owners(block), naive.owners[static_cast<size_t>(block)]);
    }
  }

  BlockPool pool;
  NaivePool naive;
};

TEST(block_pool, random_operations_agree_with_a_naive_model_and_counts_return_to_zero) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    PoolPair pair(1 + static_cast<int32_t>(seed));
    for (int i = 0; i < 2000; ++i) {
      if (random() % 3 == 0) {
        pair.allocate();
      } else {
        pair.touch(static_cast<BlockId>(random() % static_cast<uint32_t>(pair.pool.n_blocks())), random() % 5);
      }
      pair.compare();
      if (HasFatalFailure()) return;
    }
    for (BlockId block = 0; block < pair.pool.n_blocks(); ++block) {
      while (pair.pool.n_owners(block) > 0) pair.touch(block, 2);
    }
    pair.compare();
    EXPECT_EQ(pair.pool.n_used(), 0);
  }
}

}  // namespace
}  // namespace candor::kv
