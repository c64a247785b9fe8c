#include "platform/topology.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "platform/cgroup.h"

namespace candor::platform {
namespace {

namespace fs = std::filesystem;

// A made-up /proc and /sys in a folder of its own.
class topology : public ::testing::Test {
 protected:
  topology() : root_(fs::temp_directory_path() / ("candor_topology_" + std::to_string(std::random_device()()))) {
    write("proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
    write("proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n");
    write("sys/devices/system/cpu/online", "0-7\n");
    for (int cpu = 0; cpu < 8; ++cpu) {
      write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
            std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4) + "\n");
    }
    write("sys/devices/system/node/online", "0-1\n");
    write("sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:        8000000 kB\n");
    write("sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
  }
  ~topology() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void mount_v2() {
    write("proc/self/mountinfo",
          "25 30 0:23 / /proc rw - proc proc rw\n35 30 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup rw\n");
    write("proc/self/cgroup", "0::/user.slice/job\n");
  }

  fs::path root_;
};

TEST_F(topology, cores_siblings_nodes_and_memory_are_read) {
  const Topology seen = read_topology(root_);
  EXPECT_EQ(seen.n_allowed(), 8);
  EXPECT_EQ(seen.n_cores, 4);
  ASSERT_EQ(seen.numa_nodes.size(), 2u);
  EXPECT_EQ(seen.numa_nodes[1].cpus, (std::vector<int32_t>{2, 3, 6, 7}));
  EXPECT_EQ(seen.numa_nodes[0].memory_bytes, 8000000ull * 1024);
  EXPECT_EQ(seen.memory_available_bytes, 8000000ull * 1024);
  EXPECT_FALSE(seen.quota_cpus || seen.memory_limit);
  EXPECT_EQ(advise_threads(seen).n_threads, 4);
}

TEST_F(topology, cores_that_are_all_alike_are_one_kind_without_places) {
  const Topology seen = read_topology(root_);
  ASSERT_EQ(seen.core_kinds.size(), 1u);
  EXPECT_EQ(seen.core_kinds[0].n_cores, 4);
  EXPECT_TRUE(place_threads(seen, 4).empty());
}

// As Linux shows Intel's: 2 large cores with 2 threads each, 4 small ones of three quarters of their clock.
TEST_F(topology, small_cores_are_a_kind_that_comes_last_and_gets_less_work) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
    const std::string siblings =
        cpu < 4 ? std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1) : std::to_string(cpu);
    write(folder + "/topology/thread_siblings_list", siblings + "\n");
    write(folder + "/cpufreq/cpuinfo_max_freq", cpu < 4 ? "4800000\n" : "3600000\n");
  }
  write("sys/devices/cpu_core/cpus", "0-3\n");
  write("sys/devices/cpu_atom/cpus", "4-7\n");
  const Topology seen = read_topology(root_);
  ASSERT_EQ(seen.core_kinds.size(), 2u);
  EXPECT_EQ(seen.core_kinds[0].cpus, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(seen.core_kinds[0].n_cores, 2);
  EXPECT_EQ(seen.core_kinds[1].n_cores, 4);
  EXPECT_EQ(seen.core_kinds[1].capacity, 384);
  EXPECT_EQ(advise_threads(seen).n_threads, 6);
  const auto places = place_threads(seen, 5);
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[1].weight, 1024);
  EXPECT_EQ(places[2].weight, 384);
  EXPECT_EQ(places[2].cpus, (std::vector<int32_t>{4, 5, 6, 7}));
  EXPECT_TRUE(place_threads(seen, 8).empty());
}

// As Linux shows Arm's: a capacity for each, here of three kinds, the last too slow to be waited for.
TEST_F(topology, stated_capacities_are_kinds_and_the_slowest_get_no_thread) {
  const char* capacities[] = {"250", "250", "760", "750", "1024", "1024", "250", "250"};
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
    write(folder + "/topology/thread_siblings_list", std::to_string(cpu) + "\n");
    write(folder + "/cpu_capacity", std::string(capacities[cpu]) + "\n");
  }
  const Topology seen = read_topology(root_);
  ASSERT_EQ(seen.core_kinds.size(), 3u);
  EXPECT_EQ(seen.core_kinds[0].cpus, (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(seen.core_kinds[1].cpus, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(seen.core_kinds[2].cpus, (std::vector<int32_t>{0, 1, 6, 7}));
  const ThreadAdvice advice = advise_threads(seen);
  EXPECT_EQ(advice.n_threads, 4);
  EXPECT_NE(advice.reason.find("2 of speed 1 and 2 of speed 0.7 and 4 of speed 0.2 (left out)"), std::string::npos)
      << advice.reason;
  write("proc/self/status", "Cpus_allowed_list:\t0-1\n");
  EXPECT_EQ(advise_threads(read_topology(root_)).n_threads, 2);  // the fastest of what is allowed
}

TEST_F(topology, affinity_narrows_the_processors) {
  write("proc/self/status", "Cpus_allowed_list:\t1,5\n");
  const Topology seen = read_topology(root_);
  EXPECT_EQ(seen.allowed_cpus, (std::vector<int32_t>{1, 5}));
  EXPECT_EQ(seen.n_cores, 1);
  EXPECT_EQ(advise_threads(seen).n_threads, 1);
}

TEST_F(topology, a_v2_group_limits_time_memory_and_processors_on_every_level) {
  mount_v2();
  write("sys/fs/cgroup/user.slice/cpu.max", "250000 100000\n");
  write("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/user.slice/memory.max", "4000000000\n");
  write("sys/fs/cgroup/user.slice/memory.current", "1500000000\n");
  write("sys/fs/cgroup/user.slice/memory.stat", "anon 1000000000\ninactive_file 500000000\n");
  write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  write("sys/fs/cgroup/user.slice/job/cpuset.cpus.effective", "0-2\n");
  const Topology seen = read_topology(root_);
  EXPECT_DOUBLE_EQ(seen.quota_cpus.value(), 2.5);
  EXPECT_EQ(seen.memory_limit.value(), 4000000000u);
  EXPECT_EQ(seen.memory_available_bytes, 3000000000u);
  EXPECT_EQ(seen.allowed_cpus, (std::vector<int32_t>{0, 1, 2}));
  const ThreadAdvice advice = advise_threads(seen);
  EXPECT_EQ(advice.n_threads, 2);
  EXPECT_NE(advice.reason.find("quota of 2.5"), std::string::npos) << advice.reason;
}

TEST_F(topology, a_v1_container_that_sees_only_its_own_folder_is_read) {
  write("proc/self/mountinfo",
        "1 2 0:3 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        "1 2 0:4 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const Topology seen = read_topology(root_);
  EXPECT_DOUBLE_EQ(seen.quota_cpus.value(), 0.5);
  EXPECT_FALSE(seen.memory_limit);
  EXPECT_EQ(advise_threads(seen).n_threads, 1);
}

TEST_F(topology, files_that_make_no_sense_count_as_no_limit) {
  mount_v2();
  for (const char* text : {"", "max", "-5 100000", "0 0", "10 0", "x y", "99999999999999999999 1"}) {
    write("sys/fs/cgroup/user.slice/job/cpu.max", text);
    EXPECT_FALSE(read_topology(root_).quota_cpus) << text;
  }
  write("proc/self/cgroup", "0::/../../other\n");
  EXPECT_EQ(read_topology(root_).n_cores, 4);
  write("proc/meminfo", "MemAvailable: lots\n");
  EXPECT_EQ(read_topology(root_).memory_available_bytes, 0u);
}

TEST_F(topology, an_empty_root_still_gives_one_processor_at_least) {
  const Topology seen = read_topology(root_ / "absent");
  EXPECT_GE(seen.n_allowed(), 1);
  EXPECT_GE(advise_threads(seen).n_threads, 1);
  EXPECT_EQ(seen.memory_available_bytes, 0u);
}

TEST(cpu_list, ranges_are_expanded_and_nonsense_gives_nothing) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (std::vector<int32_t>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("5"), (std::vector<int32_t>{5}));
  for (const char* bad : {"", "\n", "a", "3-1", "1-", "-1", "0-99999999", "1;2", "99999999999999"})
    EXPECT_TRUE(parse_cpu_list(bad).empty()) << bad;
}

TEST(this_machine, gives_plausible_values) {
  const Topology seen = read_topology();
  EXPECT_GE(seen.n_allowed(), seen.n_cores);
  EXPECT_GT(seen.memory_bytes, seen.memory_available_bytes);
  EXPECT_LE(advise_threads(seen).n_threads, seen.n_allowed());
}

}  // namespace
}  // namespace candor::platform
