#include "comm/shm/shm_communicator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "platform/affinity.h"
#include "platform/topology.h"

namespace candor::comm {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kTag = 77;

// Each rank a thread of this process.
void run_ranks(int32_t n_ranks, const std::function<void(ShmCommunicator&)>& body, ShmOptions options = {}) {
  auto segment = Segment::make(n_ranks);
  ASSERT_TRUE(segment) << segment.error().message;
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < n_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ShmCommunicator comm(*segment, rank, options);
      if (comm.wait_for_all(milliseconds(30'000))) body(comm);
      if (comm.barrier()) comm.expect_end();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The value of column `col` of row `row`, on any rank.
float number_at(int32_t round, int32_t row, int32_t col) {
  return static_cast<float>(round * 100'000 + row * 1000 + col);
}

// Gathers made-up rows and counts what is not in its place.
int64_t count_wrong(Communicator& comm, const std::vector<int32_t>& bounds, int32_t n_rows, Receivers receivers) {
  static constexpr int32_t kRounds = 3;
  const auto rank = static_cast<size_t>(comm.rank());
  const int32_t n_cols = bounds.back();
  int64_t n_wrong = 0;
  for (int32_t round = 0; round < kRounds; ++round) {
    std::vector<float> rows(static_cast<size_t>(n_rows) * static_cast<size_t>(n_cols), -1.0f);
    size_t at = 0;
    for (int32_t row = 0; row < n_rows; ++row) {
      for (int32_t col = bounds[rank]; col < bounds[rank + 1]; ++col) rows[at++] = number_at(round, row, col);
    }
    const std::vector<float> before = rows;
    EXPECT_TRUE(comm.gather({rows.data(), n_rows, bounds}, receivers, kTag));
    if (receivers == Receivers::kFirst && comm.rank() != 0) {
      n_wrong += rows == before ? 0 : 1;
      continue;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto place = static_cast<int32_t>(i);
      n_wrong += rows[i] == number_at(round, place / n_cols, place % n_cols) ? 0 : 1;
    }
  }
  return n_wrong;
}

TEST(shm_communicator, rows_are_put_together_from_slices_of_any_width) {
  const std::vector<std::vector<int32_t>> all_bounds = {
      {0, 1, 2, 3}, {0, 16, 48, 64}, {0, 0, 5, 5}, {0, 7, 7, 8}, {0, 3000, 3001, 9000}, {0, 40, 40, 40}};
  for (const Receivers receivers : {Receivers::kAll, Receivers::kFirst}) {
    std::vector<int64_t> n_wrong(3, 0);
    run_ranks(3, [&](ShmCommunicator& comm) {
      for (const auto& bounds : all_bounds) {
        for (const int32_t n_rows : {1, 2, 33}) {
          n_wrong[static_cast<size_t>(comm.rank())] += count_wrong(comm, bounds, n_rows, receivers);
        }
      }
    });
    EXPECT_EQ(n_wrong, std::vector<int64_t>(3, 0));
  }
}

TEST(shm_communicator, more_than_a_ring_holds_goes_both_ways_at_once) {
  const auto wide = static_cast<int32_t>(kRingBytes / sizeof(float)) * 3;
  std::vector<int64_t> n_wrong(2, 0);
  run_ranks(2, [&](ShmCommunicator& comm) {
    n_wrong[static_cast<size_t>(comm.rank())] = count_wrong(comm, {0, wide / 3, wide}, 2, Receivers::kAll);
  });
  EXPECT_EQ(n_wrong, std::vector<int64_t>(2, 0));
}

TEST(shm_communicator, the_first_ranks_message_becomes_everybodys) {
  std::vector<std::string> heard(4);
  run_ranks(4, [&](ShmCommunicator& comm) {
    for (const std::string& said : {std::string("hello"), std::string(), std::string(1'000'000, 'x')}) {
      std::vector<std::byte> message(3);
      if (comm.rank() == 0) {
        const auto bytes = std::as_bytes(std::span(said));
        message.assign(bytes.begin(), bytes.end());
      }
      EXPECT_TRUE(comm.broadcast(message));
      heard[static_cast<size_t>(comm.rank())] += std::to_string(message.size()) + ",";
    }
  });
  EXPECT_EQ(heard, std::vector<std::string>(4, "5,0,1000000,"));
}

TEST(shm_communicator, whoever_sleeps_is_woken) {
  run_ranks(2, [&](ShmCommunicator& comm) {
    for (int i = 0; i < 5; ++i) {
      if (comm.rank() == i % 2) std::this_thread::sleep_for(milliseconds(20));
      EXPECT_TRUE(comm.barrier());
    }
  });
}

// Neither leaves before the other has seen it.
TEST(shm_communicator, ranks_that_gather_different_things_are_told) {
  std::latch both(2);
  run_ranks(2, [&](ShmCommunicator& comm) {
    std::vector<float> rows(8);
    const std::vector<int32_t> bounds = {0, 4, 8};
    const auto gathered = comm.gather({rows.data(), 1, bounds}, Receivers::kAll, static_cast<uint64_t>(comm.rank()));
    both.arrive_and_wait();
    ASSERT_FALSE(gathered);
    EXPECT_NE(gathered.error().message.find("lost its way"), std::string::npos) << gathered.error().message;
  });
}

TEST(shm_communicator, traffic_is_counted) {
  run_ranks(2, [&](ShmCommunicator& comm) {
    std::vector<float> rows(8);
    const std::vector<int32_t> bounds = {0, 4, 8};
    EXPECT_TRUE(comm.gather({rows.data(), 1, bounds}, Receivers::kAll, kTag));
    EXPECT_EQ(comm.traffic().n_gathers, 1u);
    EXPECT_EQ(comm.traffic().bytes, 16u + 4 * sizeof(float));
  });
}

TEST(shm_communicator, a_rank_that_never_comes_is_named) {
  const auto segment = Segment::make(3);
  ASSERT_TRUE(segment);
  ShmCommunicator first(*segment, 0, {});
  ShmCommunicator second(*segment, 1, {});
  const auto come = first.wait_for_all(milliseconds(0));
  ASSERT_FALSE(come);
  EXPECT_NE(come.error().message.find("rank 2 has not come"), std::string::npos) << come.error().message;
}

TEST(shm_communicator, a_rank_that_says_why_it_failed_is_quoted) {
  const auto segment = Segment::make(2);
  ASSERT_TRUE(segment);
  ShmCommunicator first(*segment, 0, {});
  ShmCommunicator second(*segment, 1, {});
  second.say_failed(fail(ErrorKind::kInvalidInput, "the file is another one"));
  const auto waited = first.barrier();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message, "rank 1: the file is another one");
  EXPECT_EQ(waited.error().kind, ErrorKind::kInvalidInput);
  EXPECT_FALSE(first.health());
}

TEST(shm_communicator, a_rank_that_has_left_is_not_waited_for) {
  const auto segment = Segment::make(2);
  ASSERT_TRUE(segment);
  ShmCommunicator first(*segment, 0, {});
  { const ShmCommunicator second(*segment, 1, {}); }
  const auto waited = first.barrier();
  ASSERT_FALSE(waited);
  EXPECT_NE(waited.error().message.find("has left"), std::string::npos) << waited.error().message;
}

// A rank that beats is alive whatever it computes; one whose process does not run is not.
TEST(shm_communicator, a_rank_that_says_nothing_is_lost_and_one_that_works_long_is_not) {
  const auto segment = Segment::make(2);
  ASSERT_TRUE(segment);
  ShmCommunicator first(*segment, 0, {.watch = {.silence = milliseconds(1500)}});
  auto second = std::make_unique<ShmCommunicator>(*segment, 1, ShmOptions{});
  std::this_thread::sleep_for(milliseconds(2500));
  EXPECT_TRUE(first.health());
  second->expect_end();  // says nothing from now on
  const auto waited = first.barrier();
  ASSERT_FALSE(waited);
  EXPECT_NE(waited.error().message.find("has not answered"), std::string::npos) << waited.error().message;
}

// The process of a rank as the system shows it: here and gone.
TEST(shm_communicator, a_process_that_has_ended_is_noticed) {
  const auto segment = Segment::make(2);
  ASSERT_TRUE(segment);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  RankEntry& entry = (*segment)->entry(1);
  entry.pid.store(child);
  entry.state.store(RankState::kHere);
  ShmCommunicator first(*segment, 0, {.watch = {.silence = milliseconds(60'000)}});
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_TRUE(first.health());
  ::kill(child, SIGKILL);
  const auto waited = first.barrier();
  ::waitpid(child, nullptr, 0);
  ASSERT_FALSE(waited);
  EXPECT_NE(waited.error().message.find("has ended"), std::string::npos) << waited.error().message;
}

// What lies in a ring of one host comes into the same ring of another one.
void carry(Segment& from, Segment& to, int32_t sender, int32_t receiver) {
  Ring& out = from.ring(sender, receiver);
  Ring& in = to.ring(sender, receiver);
  const uint64_t n_written = out.n_written.load();
  in.bytes = out.bytes;
  in.n_written.store(n_written);
  out.n_read.store(n_written);
  ring_bell(to.entry(receiver));
}

// The rank that comes last finds everything there, and has a processor together with what carries its own bytes.
TEST(shm_communicator, bytes_for_another_host_are_on_their_way_before_a_rank_computes_on) {
  const auto host_a = Segment::make(2), host_b = Segment::make(2);
  ASSERT_TRUE(host_a && host_b);
  (*host_a)->keep_apart(1, "b");
  (*host_b)->keep_apart(0, "a");
  ExchangeSign sign;
  ShmCommunicator last(*host_a, 0, {.spin = false, .sign = &sign});
  std::thread first([&] {
    ShmCommunicator comm(*host_b, 1, {});
    EXPECT_TRUE(comm.barrier());
  });
  while ((*host_b)->ring(1, 0).n_written.load() == 0) std::this_thread::yield();
  carry(**host_b, **host_a, 1, 0);
  std::thread rank([&] {
    platform::run_on({platform::read_topology().allowed_cpus.front()});
    std::thread carrier([&] {
      while ((*host_a)->ring(0, 1).n_written.load() == 0) sign.wait_for_one(1'000'000'000);
      carry(**host_a, **host_b, 0, 1);
    });
    EXPECT_TRUE(last.barrier());
    const Ring& out = (*host_a)->ring(0, 1);
    EXPECT_GT(out.n_written.load(), 0u);
    EXPECT_EQ(out.n_read.load(), out.n_written.load());
    carrier.join();
  });
  rank.join();
  first.join();
}

TEST(segment, what_is_no_memory_of_ranks_is_refused) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const auto attached = Segment::attach(null);
  ::close(null);
  ASSERT_FALSE(attached);
  EXPECT_NE(attached.error().message.find("no memory of ranks"), std::string::npos);
}

TEST(segment, those_who_attach_see_the_same_memory) {
  const auto made = Segment::make(2);
  ASSERT_TRUE(made);
  const auto attached = Segment::attach(::dup((*made)->descriptor()));
  ASSERT_TRUE(attached) << attached.error().message;
  (*made)->ring(0, 1).bytes[5] = std::byte{42};
  EXPECT_EQ((*attached)->ring(0, 1).bytes[5], std::byte{42});
  EXPECT_EQ((*attached)->n_ranks(), 2);
}

}  // namespace
}  // namespace candor::comm
