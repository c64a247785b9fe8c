#include "comm/mpi/roll_call.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace candor::comm {
namespace {

TEST(roll_call, names_the_ranks_that_are_not_here) {
  const std::string job = "test-" + std::to_string(::getpid());
  const RollCall first(job, 0);
  EXPECT_EQ(first.missing(3), (std::vector<int32_t>{1, 2}));
  auto second = std::make_unique<RollCall>(job, 2);
  EXPECT_EQ(first.missing(3), std::vector<int32_t>{1});
  EXPECT_EQ(second->missing(3), std::vector<int32_t>{1});
  second.reset();
  EXPECT_EQ(first.missing(3), (std::vector<int32_t>{1, 2}));
}

TEST(roll_call, jobs_do_not_see_each_other) {
  const std::string job = "test-" + std::to_string(::getpid());
  const RollCall one(job + "a", 0);
  const RollCall other(job + "b", 1);
  EXPECT_EQ(one.missing(2), std::vector<int32_t>{1});
}

}  // namespace
}  // namespace candor::comm
