#pragma once
// What of the machine this process may use: processors (affinity and cpuset), cores, cgroup limits (v1 and v2), NUMA
// nodes and memory. Everything is read from text under /proc and /sys below a root folder, so that tests feed trees of
// their own. Values are a snapshot of one moment; a file that is missing or malformed counts as "no limit".

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/affinity.h"

namespace candor::platform {

struct NumaNode {
  int32_t id = 0;
  std::vector<int32_t> cpus;  // those of allowed_cpus
  uint64_t memory_bytes = 0;  // 0: none that this process may use, or unknown
  int32_t n_cores = 0;        // physical cores among cpus
};

// Cores that are equally fast, of processors that have some of several kinds.
struct CoreKind {
  std::vector<int32_t> cpus;  // those of allowed_cpus
  int32_t n_cores = 1;
  int32_t capacity = kFullCapacity;
  static constexpr int32_t kFullCapacity = 1024;  // of the fastest
};

struct Topology {
  std::vector<int32_t> allowed_cpus;  // logical processors, ascending, at least one
  int32_t n_cores = 1;                // physical cores among them
  std::vector<CoreKind> core_kinds;   // at least one, the fastest first
  std::optional<double> quota_cpus;   // processors' worth of time that the cgroup grants
  std::vector<NumaNode> numa_nodes;
  uint64_t memory_bytes = 0;             // of the machine; 0 = unknown
  std::optional<uint64_t> memory_limit;  // of the cgroup
  uint64_t memory_available_bytes = 0;   // what can still be taken without swapping, within the limit; 0 = unknown

  int32_t n_allowed() const { return static_cast<int32_t>(allowed_cpus.size()); }
};

Topology read_topology(const std::filesystem::path& root = "/");

struct ThreadAdvice {
  int32_t n_threads = 1;
  std::string reason;  // one line for people: "2 threads: 2 cores allowed, ..."
};

// One thread for each physical core, within the cgroup's quota; of several kinds, for those that are worth one: at
// least kLeastCapacity of the fastest.
inline constexpr int32_t kLeastCapacity = CoreKind::kFullCapacity / 3;
ThreadAdvice advise_threads(const Topology& topology);

// Where so many threads should run, the fastest cores first: each where the cores of one kind are, so that the system
// may still move it among them. Empty where all cores are alike, or there are more threads than cores.
std::vector<ThreadPlace> place_threads(const Topology& topology, int32_t n_threads);

// "0-3,8,10-11" as the kernel writes lists of processors; empty on anything malformed or beyond 65535.
std::vector<int32_t> parse_cpu_list(std::string_view text);

}  // namespace candor::platform
