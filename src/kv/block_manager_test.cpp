#include "kv/block_manager.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace candor::kv {
namespace {

constexpr int32_t kTokensPerBlock = 4;

uint64_t constant_hash(uint64_t, std::span<const TokenId>) {
  return 7;
}

std::vector<TokenId> iota(int32_t n) {
  std::vector<TokenId> tokens;
  for (TokenId i = 0; i < n; ++i) tokens.push_back(i);
  return tokens;
}

BlockTable filled(BlockManager& manager, const PrefixKey& key, const std::vector<TokenId>& tokens) {
  BlockTable table;
  const int32_t n = static_cast<int32_t>(tokens.size());
  EXPECT_TRUE(manager.grow(table, n));
  manager.publish(key, tokens, n, table);
  return table;
}

TEST(block_manager, a_second_sequence_takes_the_published_beginning_of_the_first) {
  BlockManager manager(8, kTokensPerBlock);
  const auto tokens = iota(10);
  BlockTable first = filled(manager, {}, tokens);
  BlockTable second;
  EXPECT_EQ(manager.match({}, tokens, second), 8);
  EXPECT_EQ(second.blocks[0], first.blocks[0]);
  EXPECT_EQ(second.blocks[1], first.blocks[1]);
  manager.release(first);
  manager.release(second);
  EXPECT_EQ(manager.pool().n_used(), 0);
  EXPECT_EQ(manager.pool().n_cached(), 2);
}

TEST(block_manager, every_part_of_the_key_separates) {
  BlockManager manager(16, kTokensPerBlock, constant_hash);
  const auto tokens = iota(4);
  BlockTable table = filled(manager, {}, tokens);
  std::vector<PrefixKey> others(4);
  others[0].model_hash = 1;
  others[1].numerics_version = 1;
  others[2].kv_type = 1;
  others[3].scope = "someone else";
  for (const PrefixKey& other : others) {
    BlockTable none;
    EXPECT_EQ(manager.match(other, tokens, none), 0);
  }
  BlockTable same;
  EXPECT_EQ(manager.match({}, tokens, same), 4);
  manager.release(same);
  manager.release(table);
}

TEST(block_manager, equal_tokens_after_different_beginnings_are_different_content) {
  for (const PrefixHash hash : {&hash_prefix, &constant_hash}) {
    BlockManager manager(8, kTokensPerBlock, hash);
    BlockTable table = filled(manager, {}, {1, 1, 1, 1, 2, 2, 2, 2});
    BlockTable other;
    EXPECT_EQ(manager.match({}, std::vector<TokenId>{3, 3, 3, 3, 2, 2, 2, 2}, other), 0);
    EXPECT_EQ(manager.match({}, std::vector<TokenId>{2, 2, 2, 2}, other), 0);
    manager.release(table);
  }
}

TEST(block_manager, a_continuation_whose_beginning_was_forgotten_is_not_found) {
  BlockManager manager(2, kTokensPerBlock);
  BlockTable table = filled(manager, {}, iota(8));
  manager.release(table);
  BlockTable taker;
  ASSERT_TRUE(manager.grow(taker, 1));  // evicts the continuation, which was released first
  BlockTable again;
  EXPECT_EQ(manager.match({}, iota(8), again), 4);
  manager.release(again);
  manager.release(taker);
}

TEST(block_manager, a_shared_block_is_copied_before_it_is_written) {
  BlockManager manager(4, kTokensPerBlock);
  BlockTable first;
  ASSERT_TRUE(manager.grow(first, 6));
  BlockTable second;
  manager.fork(first, second);
  bool failed = false;
  const auto copy = manager.make_writable(second, 6, failed);
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(copy->src, first.blocks[1]);
  EXPECT_EQ(copy->dst, second.blocks[1]);
  EXPECT_EQ(copy->n_tokens, 2);
  EXPECT_FALSE(manager.make_writable(first, 6, failed).has_value());
  EXPECT_FALSE(failed);
  manager.release(first);
  manager.release(second);
  EXPECT_EQ(manager.pool().n_free(), 4);
}

TEST(block_manager, what_no_window_reaches_is_free_for_others_and_still_found_by_its_tokens) {
  for (const PrefixHash hash : {&hash_prefix, &constant_hash}) {
    BlockManager manager(4, kTokensPerBlock, hash);
    BlockTable table = filled(manager, {}, iota(14));
    manager.drop_before(table, 9);
    EXPECT_EQ(table.blocks[0], kNoBlock);
    EXPECT_EQ(table.blocks[1], kNoBlock);
    EXPECT_EQ(manager.pool().n_used(), 2);
    BlockTable copy;
    manager.fork(table, copy);
    BlockTable same;
    EXPECT_EQ(manager.match({}, iota(14), same), 12);
    for (BlockTable* each : {&copy, &same, &table}) manager.release(*each);
    EXPECT_EQ(manager.pool().n_used(), 0);
    EXPECT_EQ(manager.pool().n_available(), 4);
  }
}

TEST(block_manager, a_table_cut_short_gives_back_what_lies_behind) {
  BlockManager manager(8, kTokensPerBlock);
  BlockTable table = filled(manager, {}, iota(6));
  ASSERT_TRUE(manager.grow(table, 20));
  EXPECT_EQ(manager.pool().n_used(), 5);
  manager.truncate(table, 6);
  EXPECT_EQ(manager.pool().n_used(), 2);
  manager.truncate(table, 6);
  EXPECT_EQ(table.blocks.size(), 2u);
  manager.release(table);
}

TEST(block_manager, equal_blocks_computed_twice_become_one) {
  BlockManager manager(4, kTokensPerBlock);
  BlockTable first;
  BlockTable second;
  ASSERT_TRUE(manager.grow(first, 4));
  ASSERT_TRUE(manager.grow(second, 4));
  manager.publish({}, iota(4), 4, first);
  manager.publish({}, iota(4), 4, second);
  EXPECT_EQ(first.blocks, second.blocks);
  EXPECT_EQ(manager.pool().n_used(), 1);
  manager.release(first);
  manager.release(second);
}

// A store that remembers, for every position, the whole text that it was computed from.
class World {
 public:
  World(int32_t n_blocks, PrefixHash hash, uint32_t seed)
      : manager_(n_blocks, kTokensPerBlock, hash),
        store_(static_cast<size_t>(n_blocks * kTokensPerBlock)),
        random_(seed) {}

  void act() {
    const auto action = random_() % 16;
    if (sequences_.empty() || action == 0) return start();
    Live& live = sequences_[random_() % sequences_.size()];
    if (action == 1) return stop(live);
    if (action == 2) return fork(live);
    if (action <= 5) return manager_.publish(live.key, live.tokens, live.n_written, live.table);
    write(live);
  }

  void check() const {
    for (const Live& live : sequences_) {
      for (int32_t p = 0; p < live.n_written; ++p) {
        ASSERT_EQ(store_[slot(live.table, p)], text_of(live, p)) << "position " << p;
      }
    }
    ASSERT_GE(manager_.pool().n_free(), 0);
    ASSERT_LE(manager_.n_entries(), manager_.pool().n_blocks());
  }

  void stop_all() {
    while (!sequences_.empty()) stop(sequences_.back());
    EXPECT_EQ(manager_.pool().n_used(), 0);
    EXPECT_EQ(manager_.pool().n_available(), manager_.pool().n_blocks());
    EXPECT_EQ(manager_.pool().n_cached(), manager_.n_entries());
  }
  int32_t n_matched() const { return n_matched_; }
  int32_t n_copied() const { return n_copied_; }

 private:
  struct Live {
    PrefixKey key;
    std::vector<TokenId> tokens;
    BlockTable table;
    int32_t n_written = 0;
  };

  static std::string text_of(const Live& live, int32_t position) {
    std::string text = live.key.scope + ":";
    for (int32_t i = 0; i <= position; ++i) text += static_cast<char>('a' + live.tokens[static_cast<size_t>(i)]);
    return text;
  }
  static size_t slot(const BlockTable& table, int32_t position) {
    const BlockId block = table.blocks[static_cast<size_t>(position / kTokensPerBlock)];
    return static_cast<size_t>(block * kTokensPerBlock + position % kTokensPerBlock);
  }

  void start() {
    Live live;
    live.key.scope = random_() % 4 == 0 ? "other" : "";
    const auto n = 1 + random_() % 20;
    for (size_t i = 0; i < n; ++i) live.tokens.push_back(random_() % 8 == 0 ? 1 : 0);
    live.n_written = manager_.match(live.key, live.tokens, live.table);
    n_matched_ += live.n_written;
    sequences_.push_back(std::move(live));
  }
  void stop(Live& live) {
    manager_.release(live.table);
    std::swap(live, sequences_.back());
    sequences_.pop_back();
  }
  void fork(const Live& live) {
    Live copy = live;
    copy.table = {};
    manager_.fork(live.table, copy.table);
    copy.tokens.resize(static_cast<size_t>(copy.n_written));
    for (int i = 0; i < 5; ++i) copy.tokens.push_back(random_() % 2 == 0 ? 1 : 0);
    sequences_.push_back(std::move(copy));
  }
  void write(Live& live) {
    if (live.n_written == static_cast<int32_t>(live.tokens.size())) live.tokens.push_back(random_() % 8 == 0 ? 1 : 0);
    if (!manager_.grow(live.table, live.n_written + 1)) return;
    bool failed = false;
    const auto copy = manager_.make_writable(live.table, live.n_written, failed);
    if (failed) return;
    if (copy) {
      ++n_copied_;
      const size_t src = static_cast<size_t>(copy->src * kTokensPerBlock);
      const size_t dst = static_cast<size_t>(copy->dst * kTokensPerBlock);
      for (size_t i = 0; i < static_cast<size_t>(copy->n_tokens); ++i) store_[dst + i] = store_[src + i];
    }
    store_[slot(live.table, live.n_written)] = text_of(live, live.n_written);
    ++live.n_written;
  }

  BlockManager manager_;
  std::vector<std::string> store_;
  std::vector<Live> sequences_;
  std::mt19937 random_;
  int32_t n_matched_ = 0;
  int32_t n_copied_ = 0;
};

void run_worlds(PrefixHash hash) {
  int32_t n_matched = 0;
  int32_t n_copied = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    World world(4 + static_cast<int32_t>(seed), hash, seed);
    for (int i = 0; i < 600; ++i) {
      world.act();
      world.check();
      if (::testing::Test::HasFatalFailure()) return;
    }
    world.stop_all();
    n_matched += world.n_matched();
    n_copied += world.n_copied();
  }
  EXPECT_GT(n_matched, 100);
  EXPECT_GT(n_copied, 100);
}

TEST(block_manager, random_sequences_always_read_back_what_they_wrote) {
  run_worlds(hash_prefix);
}

TEST(block_manager, random_sequences_always_read_back_what_they_wrote_with_a_constant_hash) {
  run_worlds(constant_hash);
}

}  // namespace
}  // namespace candor::kv
