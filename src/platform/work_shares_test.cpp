#include "platform/work_shares.h"

#include <gtest/gtest.h>

#include <numeric>
#include <queue>
#include <utility>

namespace candor::platform {
namespace {

// Threads of these speeds (grains a unit of time) empty a job, in time that is counted and not measured: the thread
// that is done first takes next, as in the pool. Returns the time over that of work without a remainder.
double time_over_ideal(int64_t n_grains, const std::vector<double>& speeds, std::vector<int32_t> weights = {}) {
  const auto n_threads = static_cast<int32_t>(speeds.size());
  WorkShares shares(n_threads, std::move(weights));
  shares.deal(1, n_grains);
  using Ready = std::pair<double, int32_t>;  // when, which thread
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (int32_t thread = 0; thread < n_threads; ++thread) ready.emplace(0.0, thread);
  int64_t n_done = 0;
  double end = 0;
  while (!ready.empty()) {
    const auto [now, thread] = ready.top();
    ready.pop();
    end = std::max(end, now);
    for (int32_t step = 0; step < n_threads; ++step) {
      const auto taken = shares.take((thread + step) % n_threads, thread);
      if (!taken) continue;
      n_done += taken->count;
      ready.emplace(now + static_cast<double>(taken->count) / speeds[static_cast<size_t>(thread)], thread);
      break;
    }
  }
  EXPECT_EQ(n_done, n_grains);
  return end * std::accumulate(speeds.begin(), speeds.end(), 0.0) / static_cast<double>(n_grains);
}

TEST(work_shares, every_grain_is_taken_once) {
  WorkShares shares(3, {4, 1, 2});
  std::vector<int> counts(1000, 0);
  shares.deal(7, 1000);
  for (int round = 0; round < 1000; ++round) {
    const auto taken = shares.take(round % 3, (round / 3) % 3);
    for (int64_t i = 0; taken && i < taken->count; ++i) ++counts[static_cast<size_t>(taken->first + i)];
  }
  EXPECT_EQ(counts, std::vector<int>(1000, 1));
  EXPECT_FALSE(shares.take(0, 0));
}

// One thread of 40 %, of which nobody knows.
TEST(work_shares, a_thread_that_is_slowed_down_holds_a_step_up_by_a_tenth_at_most) {
  for (const int32_t n_threads : {2, 3, 4, 6, 8, 12, 16}) {
    for (const int32_t slow : {0, n_threads / 2, n_threads - 1}) {
      std::vector<double> speeds(static_cast<size_t>(n_threads), 1.0);
      speeds[static_cast<size_t>(slow)] = 0.4;
      for (const int64_t n_each : {64, 128, 1000}) {
        EXPECT_LE(time_over_ideal(n_each * n_threads, speeds), 1.1) << slow << " of " << n_threads << ", " << n_each;
      }
    }
  }
}

// Half the cores are small ones, and the topology says so.
TEST(work_shares, cores_of_two_kinds_are_done_at_the_same_time) {
  for (const int32_t n_each_kind : {1, 2, 4, 8}) {
    std::vector<double> speeds;
    std::vector<int32_t> weights;
    for (const auto& [speed, weight] : {std::pair{1.0, 1024}, {0.4, 410}}) {
      speeds.insert(speeds.end(), static_cast<size_t>(n_each_kind), speed);
      weights.insert(weights.end(), static_cast<size_t>(n_each_kind), weight);
    }
    EXPECT_LE(time_over_ideal(int64_t{200} * n_each_kind, speeds, weights), 1.05) << n_each_kind;
  }
}

TEST(work_shares, a_fast_thread_alone_may_have_as_much_as_its_share_can_count) {
  WorkShares shares(2, {1024, 1});
  EXPECT_GE(shares.most_grains(), 65535);
  EXPECT_EQ(WorkShares(2).most_grains(), 2 * 65535);
  shares.deal(1, shares.most_grains());
  int64_t n_taken = 0;
  for (int32_t owner : {0, 1}) {
    while (const auto taken = shares.take(owner, owner)) n_taken += taken->count;
  }
  EXPECT_EQ(n_taken, shares.most_grains());
}

}  // namespace
}  // namespace candor::platform
