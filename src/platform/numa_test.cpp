#include "platform/numa.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace candor::platform {
namespace {

namespace fs = std::filesystem;

// A made-up machine of two sockets in a folder of its own: 6 cores of two processors each (0-5 and 10-15), and 4 cores
// of two processors each (6-9 and 16-19), with as much memory.
class numa : public ::testing::Test {
 protected:
  numa() : root_(fs::temp_directory_path() / ("candor_numa_" + std::to_string(std::random_device()()))) {
    allow("0-19", "0-1");
    write("proc/meminfo", "MemTotal:       64000000 kB\nMemAvailable:    60000000 kB\n");
    write("sys/devices/system/cpu/online", "0-19\n");
    for (int core = 0; core < 10; ++core) {
      for (const int cpu : {core, core + 10}) {
        write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
              std::to_string(core) + "," + std::to_string(core + 10) + "\n");
      }
    }
    write("sys/devices/system/node/online", "0-1\n");
    node(0, "0-5,10-15", 32000000);
    node(1, "6-9,16-19", 32000000);
  }
  ~numa() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void allow(const std::string& cpus, const std::string& nodes) {
    write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t" + cpus + "\nMems_allowed_list:\t" + nodes + "\n");
  }
  void node(int id, const std::string& cpus, int64_t kilobytes) {
    const std::string folder = "sys/devices/system/node/node" + std::to_string(id);
    write(folder + "/cpulist", cpus + "\n");
    write(folder + "/meminfo",
          "Node " + std::to_string(id) + " MemTotal:        " + std::to_string(kilobytes) + " kB\n");
  }
  // cgroup v2, of which this process may use so much.
  void limit(const std::string& file, const std::string& text) {
    write("proc/self/mountinfo", "35 30 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup rw\n");
    write("proc/self/cgroup", "0::/job\n");
    write("sys/fs/cgroup/job/" + file, text + "\n");
  }
  Topology seen() const { return read_topology(root_); }

  fs::path root_;
};

using Cpus = std::vector<int32_t>;

TEST_F(numa, each_domain_gets_a_process_with_its_processors_its_memory_and_a_thread_for_each_core) {
  EXPECT_EQ(advise_processes(seen()), 2);
  const auto places = place_processes(seen(), 2, advise_threads(seen()).n_threads);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].cpus, (Cpus{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(places[0].nodes, Cpus{0});
  EXPECT_EQ(places[0].n_threads, 6);
  EXPECT_EQ(places[1].cpus, (Cpus{6, 7, 8, 9, 16, 17, 18, 19}));
  EXPECT_EQ(places[1].nodes, Cpus{1});
  EXPECT_EQ(places[1].n_threads, 4);
}

TEST_F(numa, fewer_threads_are_shared_out_by_cores_and_each_process_has_one) {
  const auto five = place_processes(seen(), 2, 5);
  EXPECT_EQ(five[0].n_threads, 3);
  EXPECT_EQ(five[1].n_threads, 2);
  const auto one = place_processes(seen(), 2, 1);
  EXPECT_EQ(one[0].n_threads, 1);
  EXPECT_EQ(one[1].n_threads, 1);
}

TEST_F(numa, a_cpuset_takes_processors_away) {
  limit("cpuset.cpus.effective", "4-7");
  const auto places = place_processes(seen(), 2, 4);
  EXPECT_EQ(places[0].cpus, (Cpus{4, 5}));
  EXPECT_EQ(places[1].cpus, (Cpus{6, 7}));
  EXPECT_EQ(places[0].n_threads, 2);
  EXPECT_EQ(places[1].n_threads, 2);
}

TEST_F(numa, a_domain_without_processors_or_memory_that_may_be_used_is_none) {
  allow("0-5", "0-1");
  EXPECT_EQ(advise_processes(seen()), 1);
  allow("0-19", "0");
  EXPECT_EQ(advise_processes(seen()), 1);
  const auto places = place_processes(seen(), 2, 10);
  EXPECT_TRUE(places[0].cpus.empty() && places[0].nodes.empty() && places[1].cpus.empty());
  EXPECT_EQ(places[0].n_threads, 5);
}

TEST_F(numa, memory_without_processors_is_no_domain) {
  write("sys/devices/system/node/online", "0-2\n");
  node(2, "", 256000000);
  EXPECT_EQ(usable_domains(seen()).size(), 2u);
  EXPECT_EQ(advise_processes(seen()), 2);
  EXPECT_EQ(place_processes(seen(), 2, 10)[1].nodes, Cpus{1});
}

TEST_F(numa, a_domain_with_less_than_half_of_the_cores_of_another_advises_one_process) {
  allow("0-7,10-17", "0-1");  // 6 cores and 2
  EXPECT_EQ(advise_processes(seen()), 1);
  EXPECT_EQ(place_processes(seen(), 2, 8)[1].n_threads, 2);  // who asks for two gets them
}

TEST_F(numa, a_quota_below_the_domains_advises_one_process) {
  limit("cpu.max", "150000 100000");
  EXPECT_EQ(advise_processes(seen()), 1);
  limit("cpu.max", "200000 100000");
  EXPECT_EQ(advise_processes(seen()), 2);
}

TEST_F(numa, several_processes_share_a_domain_and_one_has_several) {
  const auto four = place_processes(seen(), 4, 10);
  EXPECT_EQ(four[0].nodes, Cpus{0});
  EXPECT_EQ(four[1].nodes, Cpus{0});
  EXPECT_EQ(four[2].nodes, Cpus{1});
  EXPECT_EQ(four[3].nodes, Cpus{1});
  EXPECT_EQ(four[0].n_threads + four[1].n_threads, 6);
  EXPECT_EQ(four[2].n_threads + four[3].n_threads, 4);
  write("sys/devices/system/node/online", "0-2\n");
  write("sys/devices/system/cpu/online", "0-23\n");
  allow("0-23", "0-2");
  node(2, "20-23", 32000000);
  const auto two = place_processes(seen(), 2, 14);
  EXPECT_EQ(two[0].nodes, (Cpus{0, 1}));
  EXPECT_EQ(two[1].nodes, Cpus{2});
  EXPECT_EQ(two[1].cpus, (Cpus{20, 21, 22, 23}));
}

TEST_F(numa, memory_is_not_bound_where_domains_have_unlike_amounts) {
  node(1, "6-9,16-19", 16000000);
  const auto places = place_processes(seen(), 2, 10);
  EXPECT_TRUE(places[0].nodes.empty() && places[1].nodes.empty());
  EXPECT_EQ(places[1].cpus.front(), 6);
}

TEST_F(numa, one_process_is_not_bound) {
  const auto places = place_processes(seen(), 1, 10);
  EXPECT_TRUE(places[0].cpus.empty() && places[0].nodes.empty());
  EXPECT_EQ(places[0].n_threads, 10);
}

TEST_F(numa, processors_of_another_process_are_read) {
  write("proc/17/status", "Name:\tmpirun\nCpus_allowed_list:\t2-3\n");
  EXPECT_EQ(cpus_of_process(17, root_), (Cpus{2, 3}));
  EXPECT_TRUE(cpus_of_process(18, root_).empty());
}

#if defined(__linux__)

int memory_mode(unsigned long& nodes) {
  std::array<unsigned long, 16> mask{};
  int mode = -1;
  if (::syscall(SYS_get_mempolicy, &mode, mask.data(), 16 * 64 + 1, nullptr, 0) != 0) return -1;
  nodes = mask[0];
  return mode;
}

// Node 0 is on every machine.
TEST(numa_here, a_thread_is_bound_with_those_that_it_starts_and_is_free_afterwards) {
  unsigned long nodes = 0;
  const int before = memory_mode(nodes);
  if (before < 0) GTEST_SKIP() << "this system refuses memory policies";
  const auto own = static_cast<int32_t>(::syscall(SYS_gettid));
  const Cpus all = cpus_of_process(own);
  {
    const ScopedPlace keep;
    bind_to({.cpus = {all.back()}, .nodes = {0}});
    EXPECT_EQ(memory_mode(nodes), MPOL_BIND);
    EXPECT_EQ(nodes, 1ul);
    std::thread([&] {
      EXPECT_EQ(memory_mode(nodes), MPOL_BIND);
      EXPECT_EQ(cpus_of_process(static_cast<int32_t>(::syscall(SYS_gettid))), Cpus{all.back()});
    }).join();
  }
  EXPECT_EQ(memory_mode(nodes), before);
  EXPECT_EQ(cpus_of_process(own), all);
}

#endif

}  // namespace
}  // namespace candor::platform
