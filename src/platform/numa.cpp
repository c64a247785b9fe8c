#include "platform/numa.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "platform/affinity.h"
#include "platform/cgroup.h"

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace candor::platform {
namespace {

// Processes of neighbouring numbers that have the same domains.
struct Neighbours {
  ProcessPlace place{};
  int32_t n_cores = 0;
  int32_t n_processes = 0;
};

std::vector<Neighbours> share_out_domains(const std::vector<NumaNode>& domains, int32_t n_processes) {
  const auto n_domains = static_cast<int32_t>(domains.size());
  const int32_t n_groups = std::min(n_domains, n_processes);
  std::vector<Neighbours> groups(static_cast<size_t>(n_groups));
  for (int32_t i = 0; i < n_domains; ++i) {
    Neighbours& group = groups[static_cast<size_t>(i * n_groups / n_domains)];
    const NumaNode& domain = domains[static_cast<size_t>(i)];
    group.place.cpus.insert(group.place.cpus.end(), domain.cpus.begin(), domain.cpus.end());
    group.place.nodes.push_back(domain.id);
    group.n_cores += domain.n_cores;
  }
  for (int32_t i = 0; i < n_processes; ++i) ++groups[static_cast<size_t>(i * n_groups / n_processes)].n_processes;
  for (Neighbours& group : groups) std::ranges::sort(group.place.cpus);
  return groups;
}

// The part of n things that belongs to the share [begin, end) of `all`; where n does not divide, the first get more.
int32_t share_of(int64_t n, int64_t begin, int64_t end, int64_t all) {
  return static_cast<int32_t>(n * (all - begin) / all - n * (all - end) / all);
}

bool has_even_memory(const std::vector<NumaNode>& domains) {
  const auto [least, most] = std::ranges::minmax(domains, {}, &NumaNode::memory_bytes);
  return 8 * least.memory_bytes >= 7 * most.memory_bytes;
}

std::vector<ProcessPlace> places_without_binding(int32_t n_processes, int32_t n_threads) {
  std::vector<ProcessPlace> places(static_cast<size_t>(n_processes));
  for (int32_t i = 0; i < n_processes; ++i) {
    places[static_cast<size_t>(i)].n_threads = std::max(1, share_of(n_threads, i, i + 1, n_processes));
  }
  return places;
}

}  // namespace

std::vector<NumaNode> usable_domains(const Topology& topology) {
  std::vector<NumaNode> domains;
  std::ranges::copy_if(topology.numa_nodes, std::back_inserter(domains),
                       [](const NumaNode& node) { return !node.cpus.empty() && node.memory_bytes > 0; });
  return domains;
}

int32_t advise_processes(const Topology& topology) {
  const std::vector<NumaNode> domains = usable_domains(topology);
  if (domains.size() < 2) return 1;
  const auto [least, most] = std::ranges::minmax(domains, {}, &NumaNode::n_cores);
  if (2 * least.n_cores < most.n_cores) return 1;
  const auto n_domains = static_cast<int32_t>(domains.size());
  return topology.quota_cpus && *topology.quota_cpus < n_domains ? 1 : n_domains;
}

std::vector<ProcessPlace> place_processes(const Topology& topology, int32_t n_processes, int32_t n_threads) {
  const std::vector<NumaNode> domains = usable_domains(topology);
  if (n_processes < 2 || domains.size() < 2) return places_without_binding(n_processes, n_threads);
  const bool binds_memory = has_even_memory(domains);
  int32_t n_cores = 0;
  for (const NumaNode& domain : domains) n_cores += domain.n_cores;
  std::vector<ProcessPlace> places;
  int32_t n_before = 0;
  for (const Neighbours& group : share_out_domains(domains, n_processes)) {
    const int32_t n_here = share_of(n_threads, n_before, n_before + group.n_cores, n_cores);
    n_before += group.n_cores;
    for (int32_t i = 0; i < group.n_processes; ++i) {
      ProcessPlace place = group.place;
      if (!binds_memory) place.nodes.clear();
      place.n_threads = std::max(1, share_of(n_here, i, i + 1, group.n_processes));
      places.push_back(std::move(place));
    }
  }
  return places;
}

#if defined(__linux__)

namespace {

constexpr size_t kBits = 8 * sizeof(NodeMask::value_type);
constexpr size_t kMaskBits = 8 * sizeof(NodeMask);
// The kernel counts one bit less than it is told.
constexpr size_t kToldBits = kMaskBits + 1;

}  // namespace

void bind_to(const ProcessPlace& place) {
  run_on(place.cpus);
  if (place.nodes.empty()) return;
  NodeMask mask{};
  for (const int32_t node : place.nodes) {
    if (node >= 0 && static_cast<size_t>(node) < kMaskBits) {
      mask[static_cast<size_t>(node) / kBits] |= 1ul << (static_cast<size_t>(node) % kBits);
    }
  }
  ::syscall(SYS_set_mempolicy, MPOL_BIND, mask.data(), kToldBits);
}

ScopedPlace::ScopedPlace() : cpus_(cpus_of_process(static_cast<int32_t>(::syscall(SYS_gettid)))) {
  if (::syscall(SYS_get_mempolicy, &memory_mode_, nodes_.data(), kToldBits, nullptr, 0) != 0) memory_mode_ = -1;
}

ScopedPlace::~ScopedPlace() {
  run_on(cpus_);
  if (memory_mode_ >= 0) ::syscall(SYS_set_mempolicy, memory_mode_, nodes_.data(), kToldBits);
}

#else

void bind_to(const ProcessPlace& place) {
  run_on(place.cpus);
}

ScopedPlace::ScopedPlace() = default;
ScopedPlace::~ScopedPlace() = default;

#endif

std::vector<int32_t> cpus_of_process(int32_t pid, const std::filesystem::path& root) {
  const std::string status = read_small_file(root / "proc" / std::to_string(pid) / "status");
  return parse_cpu_list(line_after(status, "Cpus_allowed_list:").value_or(""));
}

}  // namespace candor::platform
