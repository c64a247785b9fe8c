// States that stay behind with blocks: who finds which, and what goes when room is wanted.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kv/block_manager.h"

namespace candor::kv::checkpoint_tests {
namespace {

constexpr int32_t kTokensPerBlock = 4;

std::vector<TokenId> iota(int32_t n, TokenId first = 0) {
  std::vector<TokenId> tokens;
  for (TokenId i = 0; i < n; ++i) tokens.push_back(first + i);
  return tokens;
}

// Reads all tokens in one step, and keeps the states behind some of them.
BlockTable read(BlockManager& manager, const std::vector<TokenId>& tokens, const std::vector<StateAt>& kept) {
  BlockTable table;
  const int32_t n = static_cast<int32_t>(tokens.size());
  EXPECT_TRUE(manager.grow(table, n));
  for (const StateAt& state : kept) manager.states().plan(table.state, state.n_tokens, state.keep);
  manager.states().plan(table.state, n);
  manager.publish({}, tokens, n, table);
  manager.settle_states(table, n);
  return table;
}

int32_t n_found(BlockManager& manager, const std::vector<TokenId>& tokens) {
  BlockTable table;
  const int32_t n = manager.match({}, tokens, table);
  EXPECT_EQ(table.state.now != kNoState, n > 0);
  EXPECT_EQ(static_cast<int32_t>(table.blocks.size()) * kTokensPerBlock, n);
  manager.release(table);
  return n;
}

TEST(checkpoints, what_is_found_ends_at_the_newest_one_inside_of_what_is_known) {
  BlockManager manager(16, kTokensPerBlock, hash_prefix, 8);
  const auto tokens = iota(22);
  BlockTable first = read(manager, tokens, {{8, kNoState, Keep::kLast}, {16, kNoState, Keep::kSpread}});
  EXPECT_EQ(manager.states().n_checkpoints(), 2);
  EXPECT_EQ(n_found(manager, tokens), 16);
  EXPECT_EQ(n_found(manager, iota(15)), 8);
  EXPECT_EQ(n_found(manager, iota(7)), 0);
  BlockTable second;
  EXPECT_EQ(manager.match({}, iota(15), second), 8);
  EXPECT_EQ(second.n_known, 12);
  for (BlockTable* each : {&first, &second}) manager.release(*each);
  EXPECT_EQ(manager.states().n_used(), 0);
  EXPECT_EQ(n_found(manager, tokens), 16);
}

TEST(checkpoints, a_state_that_was_not_reached_stays_behind_for_nobody) {
  BlockManager manager(16, kTokensPerBlock, hash_prefix, 8);
  BlockTable table;
  ASSERT_TRUE(manager.grow(table, 8));
  manager.states().plan(table.state, 7);
  manager.states().plan(table.state, 8, Keep::kNewest);  // behind a draft, which is rejected
  manager.publish({}, iota(7), 7, table);
  manager.settle_states(table, 7);
  EXPECT_EQ(manager.states().n_checkpoints(), 0);
  EXPECT_EQ(manager.states().n_used(), 1);
  manager.release(table);
}

TEST(checkpoints, slots_that_are_wanted_come_from_spread_ones_and_then_from_the_oldest) {
  BlockManager manager(32, kTokensPerBlock, hash_prefix, 5);
  std::vector<BlockTable> tables;
  tables.push_back(read(manager, iota(9, 0), {{4, kNoState, Keep::kSpread}, {8, kNoState, Keep::kLast}}));
  tables.push_back(read(manager, iota(9, 100), {{8, kNoState, Keep::kLast}}));
  for (BlockTable& table : tables) manager.release(table);
  EXPECT_EQ(manager.states().n_checkpoints(), 3);
  std::vector<StateTable> takers(5);
  manager.states().plan(takers[0], 1);
  manager.states().plan(takers[1], 1);  // two slots were free
  EXPECT_EQ(n_found(manager, iota(6, 0)), 4);  // found, so that it goes in its turn like any other
  manager.states().plan(takers[2], 1);
  EXPECT_EQ(n_found(manager, iota(9, 0)), 4);
  EXPECT_EQ(n_found(manager, iota(9, 100)), 8);
  manager.states().plan(takers[3], 1);
  manager.states().plan(takers[4], 1);
  EXPECT_EQ(n_found(manager, iota(9, 0)) + n_found(manager, iota(9, 100)), 0);
  EXPECT_EQ(manager.states().n_checkpoints(), 0);
  for (StateTable& table : takers) manager.states().release(table);
  EXPECT_EQ(manager.states().n_used(), 0);
}

TEST(checkpoints, a_block_that_is_forgotten_takes_its_checkpoint_with_it) {
  BlockManager manager(3, kTokensPerBlock, hash_prefix, 4);
  BlockTable table = read(manager, iota(9), {{4, kNoState, Keep::kLast}, {8, kNoState, Keep::kLast}});
  manager.release(table);
  BlockTable taker;
  ASSERT_TRUE(manager.grow(taker, 8));
  EXPECT_EQ(manager.states().n_checkpoints(), 1);
  EXPECT_EQ(n_found(manager, iota(9)), 4);
  ASSERT_TRUE(manager.grow(taker, 12));
  EXPECT_EQ(manager.states().n_checkpoints(), 0);
  manager.release(taker);
}

TEST(checkpoints, one_that_a_sequence_goes_on_from_outlives_its_block) {
  BlockManager manager(3, kTokensPerBlock, hash_prefix, 2);
  BlockTable first = read(manager, iota(4), {{4, kNoState, Keep::kLast}});
  BlockTable second;
  ASSERT_EQ(manager.match({}, iota(5), second), 4);
  const StateId slot = second.state.now;
  manager.states().forget(second.blocks[0]);
  manager.release(first);
  EXPECT_EQ(manager.states().n_checkpoints(), 0);
  StateTable other;
  manager.states().plan(other, 1);
  EXPECT_NE(other.coming[0].slot, slot);
  manager.states().release(other);
  manager.release(second);
  EXPECT_EQ(manager.states().n_used(), 0);
}

TEST(checkpoints, of_what_is_generated_the_newest_stays_and_one_that_was_found) {
  BlockManager manager(16, kTokensPerBlock, hash_prefix, 8);
  const auto tokens = iota(32);
  BlockTable table;
  for (int32_t n = 4; n <= 12; n += 4) {
    ASSERT_TRUE(manager.grow(table, n));
    manager.states().plan(table.state, n, Keep::kNewest);
    manager.publish({}, tokens, n, table);
    manager.settle_states(table, n);
    EXPECT_EQ(manager.states().n_checkpoints(), n == 12 ? 2 : 1);
    if (n == 8) {
      EXPECT_EQ(n_found(manager, iota(9)), 8);
    }
  }
  manager.release(table);
}

TEST(checkpoints, without_slots_nothing_is_kept_and_all_is_found) {
  BlockManager manager(8, kTokensPerBlock);
  BlockTable table = read(manager, iota(9), {{4, kNoState, Keep::kLast}});
  EXPECT_EQ(manager.states().n_checkpoints(), 0);
  BlockTable second;
  EXPECT_EQ(manager.match({}, iota(9), second), 8);
  for (BlockTable* each : {&table, &second}) manager.release(*each);
}

// Sequences that read, fork, are cut short and leave at random, on a store that remembers of every slot the whole text
// whose state was written there.
class World {
 public:
  World(int32_t n_blocks, int32_t n_spare, PrefixHash hash, uint32_t seed)
      : manager_(n_blocks, kTokensPerBlock, hash, 2 * kMostLive + kMostAhead + n_spare),
        slots_(static_cast<size_t>(manager_.states().n_slots())),
        random_(seed) {}

  void act() {
    const auto action = random_() % 12;
    const bool has_room = static_cast<int32_t>(live_.size()) < kMostLive;
    if (live_.empty() || (action < 2 && has_room)) return start();
    const size_t i = random_() % live_.size();
    if (action == 2) return stop(i);
    if (action == 3 && has_room) return fork(i);
    go_on(live_[i]);
  }

  void check() const {
    for (const Live& live : live_) {
      ASSERT_TRUE(live.table.state.coming.empty());
      ASSERT_EQ(live.table.state.now == kNoState, live.n == 0);
      if (live.n == 0) continue;
      ASSERT_EQ(slots_[static_cast<size_t>(live.table.state.now)], text_of(live, live.n));
    }
    ASSERT_LE(manager_.states().n_used(), static_cast<int32_t>(live_.size()));
    ASSERT_LE(manager_.states().n_checkpoints(), manager_.n_entries());
    ASSERT_LE(manager_.states().n_checkpoints(), manager_.states().n_slots());
  }

  void stop_all() {
    while (!live_.empty()) stop(0);
    EXPECT_EQ(manager_.pool().n_used(), 0);
    EXPECT_EQ(manager_.states().n_used(), 0);
    StateTable all;
    for (int32_t i = 0; i < manager_.states().n_slots(); ++i) manager_.states().plan(all, 1);
    EXPECT_EQ(manager_.states().n_checkpoints(), 0);
    manager_.states().release(all);
  }
  int32_t n_found() const { return n_found_; }

 private:
  static constexpr int32_t kMostLive = 4;
  static constexpr int32_t kMostAhead = 3;

  struct Live {
    PrefixKey key;
    std::vector<TokenId> tokens;
    BlockTable table;
    int32_t n = 0;  // computed
  };

  static std::string text_of(const Live& live, int32_t n) {
    std::string text = live.key.scope + ":";
    for (int32_t i = 0; i < n; ++i) text += static_cast<char>('a' + live.tokens[static_cast<size_t>(i)]);
    return text;
  }
  TokenId token() { return random_() % 8 == 0 ? 1 : 0; }

  void start() {
    Live live;
    live.key.scope = random_() % 4 == 0 ? "other" : "";
    const auto n = 1 + random_() % 24;
    for (size_t i = 0; i < n; ++i) live.tokens.push_back(token());
    live.n = manager_.match(live.key, std::span(live.tokens).first(n - 1), live.table);
    n_found_ += live.n;
    live_.push_back(std::move(live));
  }
  void stop(size_t i) {
    manager_.release(live_[i].table);
    std::swap(live_[i], live_.back());
    live_.pop_back();
  }
  void fork(size_t i) {
    Live copy = live_[i];
    copy.table = {};
    manager_.fork(live_[i].table, copy.table);
    copy.tokens.resize(static_cast<size_t>(copy.n));
    live_.push_back(std::move(copy));
  }
  // A step of a few rows, of which the last may turn out to be in vain.
  void go_on(Live& live) {
    const int32_t n_rows = 1 + static_cast<int32_t>(random_() % 9);
    const int32_t n_ahead = static_cast<int32_t>(random_() % (kMostAhead + 1));
    const int32_t end = live.n + n_rows;
    while (static_cast<int32_t>(live.tokens.size()) < end + n_ahead) live.tokens.push_back(token());
    if (!manager_.grow(live.table, end + n_ahead)) return;
    for (int32_t p = live.n; p < end + n_ahead; ++p) {
      bool failed = false;
      manager_.make_writable(live.table, p, failed);
      if (failed) return manager_.truncate(live.table, live.n);
    }
    StateSlots& states = manager_.states();
    for (int32_t n = live.n + 1; n < end; ++n) {
      if (n % kTokensPerBlock == 0) states.plan_if_spare(live.table.state, n, keep(), 1 + n_ahead);
    }
    for (int32_t n = end; n <= end + n_ahead; ++n) {
      states.plan(live.table.state, n, n % kTokensPerBlock == 0 ? keep() : Keep::kNot);
    }
    for (const StateAt& state : live.table.state.coming) {
      slots_[static_cast<size_t>(state.slot)] = text_of(live, state.n_tokens);
    }
    live.n = end + static_cast<int32_t>(random_() % static_cast<uint32_t>(n_ahead + 1));
    manager_.publish(live.key, live.tokens, live.n, live.table);
    manager_.settle_states(live.table, live.n);
    live.tokens.resize(static_cast<size_t>(live.n));
    manager_.truncate(live.table, live.n);
  }
  Keep keep() { return static_cast<Keep>(random_() % 4); }

  BlockManager manager_;
  std::vector<std::string> slots_;
  std::vector<Live> live_;
  std::mt19937 random_;
  int32_t n_found_ = 0;
};

TEST(checkpoints, random_sequences_always_go_on_from_the_state_of_their_own_text) {
  for (const PrefixHash hash : {PrefixHash{hash_prefix}, PrefixHash{[](uint64_t, std::span<const TokenId>) {
                                  return uint64_t{7};
                                }}}) {
    int32_t n_found = 0;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      World world(6 + static_cast<int32_t>(seed), static_cast<int32_t>(seed % 7), hash, seed);
      for (int i = 0; i < 600; ++i) {
        world.act();
        world.check();
        if (::testing::Test::HasFatalFailure()) return;
      }
      world.stop_all();
      n_found += world.n_found();
    }
    EXPECT_GT(n_found, 1000);
  }
}

}  // namespace
}  // namespace candor::kv::checkpoint_tests
