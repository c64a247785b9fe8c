#include "backend/mixed/slot_sides.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace candor::backend::mixed {
namespace {

TEST(slot_sides, what_was_never_written_is_current_on_both) {
  const SlotSides slot;
  EXPECT_TRUE(slot.is_current(1000, Side::kDevice));
  EXPECT_TRUE(slot.is_current(1000, Side::kHost));
}

TEST(slot_sides, a_short_write_leaves_the_rest_where_it_was) {
  SlotSides slot;
  slot.note_written(100, Side::kDevice);
  slot.note_written(30, Side::kHost);
  EXPECT_TRUE(slot.is_current(30, Side::kHost));
  EXPECT_FALSE(slot.is_current(31, Side::kHost));
  EXPECT_FALSE(slot.is_current(1, Side::kDevice));
  std::vector<std::pair<int64_t, int64_t>> stale;
  slot.for_stale(80, Side::kHost, [&](int64_t begin, int64_t end) { stale.emplace_back(begin, end); });
  EXPECT_EQ(stale, (std::vector<std::pair<int64_t, int64_t>>{{30, 80}}));
  slot.note_copied(80, Side::kHost);
  EXPECT_TRUE(slot.is_current(80, Side::kHost));
  EXPECT_FALSE(slot.is_current(81, Side::kHost));
}

// Against a flag for each number.
TEST(slot_sides, writes_and_copies_in_any_order_are_as_with_a_flag_for_each_number) {
  constexpr size_t kSize = 40;
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    SlotSides slot;
    std::array<std::array<bool, kSize>, kSides> flags;
    for (auto& side : flags) side.fill(true);
    for (int i = 0; i < 30; ++i) {
      const auto n = static_cast<int64_t>(random() % (kSize + 1));
      const Side side = random() % 2 == 0 ? Side::kDevice : Side::kHost;
      const bool is_write = random() % 2 == 0;
      is_write ? slot.note_written(n, side) : slot.note_copied(n, side);
      for (size_t at = 0; at < static_cast<size_t>(n); ++at) {
        flags[static_cast<size_t>(side)][at] = true;
        if (is_write) flags[static_cast<size_t>(other_side(side))][at] = false;
      }
      for (const Side seen : {Side::kDevice, Side::kHost}) {
        std::array<bool, kSize> current;
        current.fill(true);
        slot.for_stale(kSize, seen, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          for (auto at = static_cast<size_t>(begin); at < static_cast<size_t>(end); ++at) current[at] = false;
        });
        EXPECT_EQ(current, flags[static_cast<size_t>(seen)]);
      }
    }
  }
}

}  // namespace
}  // namespace candor::backend::mixed
