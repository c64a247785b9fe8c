// What the machine can do does not grow with the number of threads that share its processors.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "apps/bench/cache_file.h"
#include "apps/bench/machine_limits.h"
#include "cli/cache_folder.h"
#include "platform/topology.h"

namespace candor::testing {
namespace {

class machine_limits : public ::testing::Test {
 protected:
  static size_t n_known() { return apps::read_cache(apps::cache_file_of("limits.json")).size(); }

  CacheFolder folder_;
};

TEST_F(machine_limits, of_more_threads_than_processors_are_those_of_the_processors) {
  const int32_t n_cpus = platform::read_topology().n_allowed();
  const auto more = apps::known_limits(n_cpus + 3);
  ASSERT_TRUE(more);
  EXPECT_EQ(n_known(), 1u);
  const auto all = apps::known_limits(n_cpus);
  ASSERT_TRUE(all);
  EXPECT_EQ(n_known(), 1u);
  EXPECT_EQ(more->dram_read_bytes, all->dram_read_bytes);
  EXPECT_EQ(more->int8_ops, all->int8_ops);
}

TEST_F(machine_limits, of_no_thread_are_not_known_and_not_kept) {
  EXPECT_FALSE(apps::known_limits(0));
  EXPECT_EQ(n_known(), 0u);
}

}  // namespace
}  // namespace candor::testing
