#include "comm/mpi/carrier.h"

#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "support/late_link.h"

namespace candor::comm {
namespace {

using std::chrono::milliseconds;
using testing::FarRank;
using testing::LateLink;

constexpr uint64_t kGatherTag = 77;

// Each rank a thread with a host of its own.
void run_far(const std::shared_ptr<LateLink>& link, const std::function<void(ShmCommunicator&)>& body) {
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < link->n_ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      FarRank far(link, rank);
      if (far.comm().wait_for_all(milliseconds(30'000))) body(far.comm());
      if (far.comm().barrier()) far.comm().expect_end();
      EXPECT_TRUE(far.leave());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Gathers rows of which each rank has columns, and counts numbers that are not in their place.
int64_t count_misplaced(Communicator& comm, const std::vector<int32_t>& bounds, int32_t n_rows) {
  const auto rank = static_cast<size_t>(comm.rank());
  const auto n_cols = static_cast<size_t>(bounds.back());
  std::vector<float> rows(static_cast<size_t>(n_rows) * n_cols, -1.0f);
  size_t at = 0;
  for (int32_t row = 0; row < n_rows; ++row) {
    for (int32_t col = bounds[rank]; col < bounds[rank + 1]; ++col)
      rows[at++] = static_cast<float>(row * bounds.back() + col);
  }
  EXPECT_TRUE(comm.gather({rows.data(), n_rows, bounds}, Receivers::kAll, kGatherTag));
  int64_t n_misplaced = 0;
  for (size_t i = 0; i < rows.size(); ++i) n_misplaced += rows[i] == static_cast<float>(i) ? 0 : 1;
  return n_misplaced;
}

TEST(carrier, rows_come_together_over_a_link) {
  std::vector<int64_t> n_misplaced(3, 0);
  run_far(std::make_shared<LateLink>(3, testing::LinkSpeed{}), [&](ShmCommunicator& comm) {
    for (const std::vector<int32_t>& bounds :
         {std::vector<int32_t>{0, 16, 48, 64}, {0, 0, 5, 5}, {0, 3000, 3001, 9000}}) {
      for (const int32_t n_rows : {1, 2, 33})
        n_misplaced[static_cast<size_t>(comm.rank())] += count_misplaced(comm, bounds, n_rows);
    }
  });
  EXPECT_EQ(n_misplaced, std::vector<int64_t>(3, 0));
}

TEST(carrier, more_than_rings_and_pieces_hold_goes_both_ways_at_once) {
  const auto wide = static_cast<int32_t>(kRingBytes / sizeof(float)) * 3;
  std::vector<int64_t> n_misplaced(2, 0);
  run_far(
      std::make_shared<LateLink>(2, testing::LinkSpeed{.latency = std::chrono::microseconds(50), .bytes_per_s = 1e9}),
      [&](ShmCommunicator& comm) {
        n_misplaced[static_cast<size_t>(comm.rank())] = count_misplaced(comm, {0, wide / 3, wide}, 2);
      });
  EXPECT_EQ(n_misplaced, std::vector<int64_t>(2, 0));
}

TEST(carrier, a_link_that_is_cut_is_noticed_by_both_ends) {
  const auto link = std::make_shared<LateLink>(2, testing::LinkSpeed{});
  std::barrier both_are_here(2);
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      FarRank far(link, rank, {.silence = milliseconds(1500)});
      ASSERT_TRUE(far.comm().wait_for_all(milliseconds(30'000)));
      EXPECT_EQ(count_misplaced(far.comm(), {0, 4, 8}, 1), 0);
      both_are_here.arrive_and_wait();
      link->cut();
      std::vector<float> rows(8);
      const std::vector<int32_t> bounds = {0, 4, 8};
      const auto gathered = far.comm().gather({rows.data(), 1, bounds}, Receivers::kAll, kGatherTag);
      ASSERT_FALSE(gathered);
      EXPECT_NE(gathered.error().message.find("(host host" + std::to_string(1 - rank) + ") has not answered"),
                std::string::npos)
          << gathered.error().message;
      EXPECT_NE(gathered.error().message.find("link"), std::string::npos) << gathered.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(carrier, why_a_far_rank_failed_is_quoted) {
  const auto link = std::make_shared<LateLink>(2, testing::LinkSpeed{});
  FarRank first(link, 0);
  FarRank second(link, 1);
  ASSERT_TRUE(first.comm().wait_for_all(milliseconds(30'000)));
  second.comm().say_failed(fail(ErrorKind::kInvalidInput, "the file is another one"));
  const auto waited = first.comm().barrier();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message, "rank 1: the file is another one");
  EXPECT_EQ(waited.error().kind, ErrorKind::kInvalidInput);
}

}  // namespace
}  // namespace candor::comm
