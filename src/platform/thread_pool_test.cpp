#include "platform/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "platform/float_mode.h"

namespace candor::platform {
namespace {

std::unique_ptr<ThreadPool> pool_of(int32_t n_threads, bool spin = true) {
  auto pool = ThreadPool::start({.n_threads = n_threads, .spin = spin});
  EXPECT_TRUE(pool);
  return std::move(*pool);
}

TEST(thread_pool, every_unit_runs_exactly_once) {
  for (const int32_t n_threads : {1, 2, 3, 8}) {
    const auto pool = pool_of(n_threads);
    for (const int64_t n_units : {0, 1, 2, 7, 64, 1000, 70000}) {
      for (const int64_t grain : {1, 3, 100}) {
        std::vector<int> counts(static_cast<size_t>(n_units), 0);
        pool->parallel_for({.n_units = n_units, .grain = grain}, [&](UnitRange range) {
          ASSERT_LT(range.thread, n_threads);
          for (int64_t i = range.begin; i < range.end; ++i) ++counts[static_cast<size_t>(i)];
        });
        EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), n_units) << n_threads << " threads, grain " << grain;
      }
    }
  }
}

TEST(thread_pool, no_thread_takes_more_than_half_of_a_range_at_once) {
  const auto pool = pool_of(4);
  std::atomic<int64_t> largest{0};
  pool->parallel_for({.n_units = 4000, .grain = 10}, [&](UnitRange range) {
    int64_t seen = largest.load();
    while (range.end - range.begin > seen && !largest.compare_exchange_weak(seen, range.end - range.begin)) {
    }
  });
  EXPECT_EQ(largest.load(), 500);
}

TEST(thread_pool, threads_of_unequal_speed_and_places_that_are_not_there_cover_every_unit) {
  const std::vector<ThreadPlace> places = {{.cpus = {0}, .weight = 1024}, {.cpus = {60000}, .weight = 400}, {}};
  const auto pool = std::move(*ThreadPool::start({.n_threads = 3, .places = places}));
  std::vector<int> counts(1000, 0);
  pool->parallel_for({.n_units = 1000}, [&](UnitRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) ++counts[static_cast<size_t>(i)];
  });
  EXPECT_EQ(counts, std::vector<int>(1000, 1));
}

TEST(thread_pool, a_job_sees_what_the_job_before_it_wrote) {
  for (const bool spin : {true, false}) {
    const auto pool = pool_of(3, spin);
    std::vector<int64_t> values(97, 0);
    pool->begin_burst();
    for (int64_t round = 0; round < 3000; ++round) {
      if (round == 1500) pool->end_burst();
      std::vector<int64_t> next(values.size());
      pool->parallel_for({.n_units = 97}, [&](UnitRange range) {
        for (int64_t i = range.begin; i < range.end; ++i)
          next[static_cast<size_t>(i)] = values[static_cast<size_t>((i + 1) % 97)] + 1;
      });
      values.swap(next);
    }
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), 97 * 3000);
  }
}

TEST(thread_pool, sleeping_workers_wake_up) {
  const auto pool = pool_of(2);
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 50; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(round * 10));
    pool->parallel_for({.n_units = 16}, [&](UnitRange range) { sum += range.end - range.begin; });
  }
  EXPECT_EQ(sum.load(), 50 * 16);
}

TEST(thread_pool, tiny_work_stays_on_the_caller) {
  const auto pool = pool_of(2);
  int n_calls = 0;
  pool->parallel_for({.n_units = 100, .grain = 1, .unit_cost = 1}, [&](UnitRange range) {
    ++n_calls;
    EXPECT_EQ(range.end - range.begin, 100);
    EXPECT_EQ(range.thread, 0);
  });
  EXPECT_EQ(n_calls, 1);
}

TEST(thread_pool, every_thread_computes_in_the_float_mode) {
  const auto pool = pool_of(4);
  std::atomic<int> n_wrong{0};
  for (int round = 0; round < 100; ++round) {
    pool->parallel_for({.n_units = 64}, [&](UnitRange) { n_wrong += float_mode_is_set() ? 0 : 1; });
  }
  EXPECT_EQ(n_wrong.load(), 0);
  EXPECT_FALSE(float_mode_is_set());
}

TEST(thread_pool, an_exception_reaches_the_caller_when_all_threads_are_done_and_the_pool_goes_on) {
  for (const int32_t n_threads : {1, 2, 8}) {
    const auto pool = pool_of(n_threads);
    for (int64_t bad = 0; bad < 1000; bad += 37) {
      std::atomic<int32_t> n_inside{0};
      const auto run = [&](int64_t thrown_by) {
        pool->parallel_for({.n_units = 1000, .grain = 3}, [&](UnitRange range) {
          ++n_inside;
          const bool is_bad = range.begin <= thrown_by && thrown_by < range.end;
          --n_inside;
          if (is_bad) throw std::runtime_error("unit " + std::to_string(thrown_by));
        });
      };
      EXPECT_THROW(run(bad), std::runtime_error);
      EXPECT_EQ(n_inside, 0);
      EXPECT_NO_THROW(run(-1));
    }
  }
}

TEST(thread_pool, counts_out_of_range_are_refused_with_the_range) {
  for (const int32_t n : {0, -1, 100000}) {
    const auto pool = ThreadPool::start({.n_threads = n});
    ASSERT_FALSE(pool);
    EXPECT_EQ(pool.error().kind, ErrorKind::kInvalidInput);
    EXPECT_NE(pool.error().message.find(std::to_string(n)), std::string::npos);
  }
}

TEST(thread_pool, starting_and_stopping_without_work_is_clean) {
  for (int i = 0; i < 20; ++i) pool_of(3);
}

}  // namespace
}  // namespace candor::platform
