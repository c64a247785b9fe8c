#include "platform/topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "platform/cgroup.h"

namespace candor::platform {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kMaxCpu = 65535;

std::vector<int32_t> intersect(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  std::vector<int32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

// Affinity already respects cpusets on a live system; both are read since either file may be hidden from us.
std::vector<int32_t> read_allowed(const fs::path& root, const std::vector<int32_t>& cpuset) {
  const std::string status = read_small_file(root / "proc/self/status");
  std::vector<int32_t> cpus = parse_cpu_list(line_after(status, "Cpus_allowed_list:").value_or(""));
  const std::vector<int32_t> online = parse_cpu_list(read_small_file(root / "sys/devices/system/cpu/online"));
  for (const std::vector<int32_t>* limit : {&online, &cpuset}) {
    if (limit->empty()) continue;
    std::vector<int32_t> both = cpus.empty() ? *limit : intersect(cpus, *limit);
    if (!both.empty()) cpus = std::move(both);
  }
  if (cpus.empty()) {
    cpus.resize(std::max(1u, std::thread::hardware_concurrency()));
    std::iota(cpus.begin(), cpus.end(), 0);
  }
  return cpus;
}

int32_t count_cores(const fs::path& root, const std::vector<int32_t>& cpus) {
  std::set<int32_t> cores;
  for (const int32_t cpu : cpus) {
    const fs::path folder = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology";
    const std::vector<int32_t> siblings = parse_cpu_list(read_small_file(folder / "thread_siblings_list"));
    cores.insert(siblings.empty() ? cpu : siblings.front());
  }
  return static_cast<int32_t>(cores.size());
}

// A processor's capacity as the system states it. Where it names kinds of cores alone (Intel), the small ones count by
// their clock, and half as much a cycle: their vector registers are half as wide.
int32_t read_capacity(const fs::path& root, int32_t cpu, const std::vector<int32_t>& small, uint64_t fastest_khz) {
  const fs::path folder = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu));
  const auto stated = leading_number(read_small_file(folder / "cpu_capacity"));
  if (stated && *stated > 0) return static_cast<int32_t>(std::min<uint64_t>(*stated, 1 << 20));
  if (!std::binary_search(small.begin(), small.end(), cpu)) return CoreKind::kFullCapacity;
  const uint64_t khz = leading_number(read_small_file(folder / "cpufreq/cpuinfo_max_freq")).value_or(fastest_khz);
  if (fastest_khz == 0) return CoreKind::kFullCapacity / 2;
  return static_cast<int32_t>(CoreKind::kFullCapacity / 2 * std::min(khz, fastest_khz) / fastest_khz);
}

// Kinds whose capacities differ by less than a tenth are one: systems state single cores' clocks.
std::vector<CoreKind> read_kinds(const fs::path& root, const std::vector<int32_t>& cpus) {
  const std::vector<int32_t> small = parse_cpu_list(read_small_file(root / "sys/devices/cpu_atom/cpus"));
  uint64_t fastest_khz = 0;
  for (const int32_t cpu : cpus) {
    const fs::path file = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "cpufreq/cpuinfo_max_freq";
    fastest_khz = std::max(fastest_khz, leading_number(read_small_file(file)).value_or(0));
  }
  std::vector<std::pair<int32_t, int32_t>> by_capacity;  // capacity, processor
  by_capacity.reserve(cpus.size());
  for (const int32_t cpu : cpus) by_capacity.emplace_back(read_capacity(root, cpu, small, fastest_khz), cpu);
  std::ranges::stable_sort(by_capacity, std::greater<>{}, &std::pair<int32_t, int32_t>::first);
  const int64_t full = std::max(1, by_capacity.front().first);
  std::vector<CoreKind> kinds;
  for (const auto& [stated, cpu] : by_capacity) {
    const auto capacity = static_cast<int32_t>(CoreKind::kFullCapacity * stated / full);
    if (kinds.empty() || 10 * capacity < 9 * kinds.back().capacity) kinds.push_back({.cpus = {}, .capacity = capacity});
    kinds.back().cpus.push_back(cpu);
  }
  for (CoreKind& kind : kinds) kind.n_cores = count_cores(root, kind.cpus);
  return kinds;
}

std::vector<NumaNode> read_nodes(const fs::path& root, const std::vector<int32_t>& allowed) {
  std::vector<NumaNode> nodes;
  const fs::path folder = root / "sys/devices/system/node";
  const std::string status = read_small_file(root / "proc/self/status");
  const std::vector<int32_t> with_memory = parse_cpu_list(line_after(status, "Mems_allowed_list:").value_or(""));
  for (const int32_t id : parse_cpu_list(read_small_file(folder / "online"))) {
    const fs::path node_folder = folder / ("node" + std::to_string(id));
    NumaNode node{.id = id, .cpus = {}};
    node.cpus = intersect(parse_cpu_list(read_small_file(node_folder / "cpulist")), allowed);
    const std::string info = read_small_file(node_folder / "meminfo");
    const auto total = line_after(info, "Node " + std::to_string(id) + " MemTotal:");
    const bool may_use = with_memory.empty() || std::ranges::binary_search(with_memory, id);
    node.memory_bytes = total && may_use ? leading_number(*total).value_or(0) * 1024 : 0;
    node.n_cores = count_cores(root, node.cpus);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

void read_memory(const fs::path& root, const CgroupLimits& limits, Topology& topology) {
  const std::string info = read_small_file(root / "proc/meminfo");
  const auto bytes_of = [&info](std::string_view key) {
    const auto text = line_after(info, key);
    return text ? leading_number(*text).value_or(0) * 1024 : uint64_t{0};
  };
  topology.memory_bytes = bytes_of("MemTotal:");
  topology.memory_available_bytes = bytes_of("MemAvailable:");
  topology.memory_limit = limits.memory_limit;
  if (limits.memory_available && topology.memory_available_bytes != 0)
    topology.memory_available_bytes = std::min(topology.memory_available_bytes, *limits.memory_available);
}

std::optional<int32_t> take_cpu(std::string_view& text) {
  int32_t cpu = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc{} || cpu < 0 || cpu > kMaxCpu) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return cpu;
}

bool take_char(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

std::string count_of(int64_t n, const std::string& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

// "2.5" from 2.5, "2" from 2.0.
std::string short_number(double value) {
  const int64_t tenths = std::llround(value * 10.0);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text.append(".").append(std::to_string(tenths % 10));
  return text;
}

}  // namespace

std::vector<int32_t> parse_cpu_list(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::vector<int32_t> cpus;
  while (!text.empty()) {
    const std::optional<int32_t> first = take_cpu(text);
    std::optional<int32_t> last = first;
    if (take_char(text, '-')) last = take_cpu(text);
    if (!first || !last || *last < *first) return {};
    for (int32_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (!text.empty() && !take_char(text, ',')) return {};
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

Topology read_topology(const fs::path& root) {
  const CgroupLimits limits = read_cgroup_limits(root);
  Topology topology;
  topology.allowed_cpus = read_allowed(root, limits.cpuset);
  topology.n_cores = count_cores(root, topology.allowed_cpus);
  topology.core_kinds = read_kinds(root, topology.allowed_cpus);
  topology.quota_cpus = limits.quota_cpus;
  topology.numa_nodes = read_nodes(root, topology.allowed_cpus);
  read_memory(root, limits, topology);
  return topology;
}

ThreadAdvice advise_threads(const Topology& topology) {
  ThreadAdvice advice;
  int32_t n_worth = 0;
  for (const CoreKind& kind : topology.core_kinds) n_worth += kind.capacity >= kLeastCapacity ? kind.n_cores : 0;
  advice.n_threads = std::max(1, n_worth);
  std::string reason = count_of(topology.n_allowed(), "logical processor") + " allowed on " +
                       count_of(topology.n_cores, "physical core");
  if (topology.n_allowed() > topology.n_cores) reason += " (one thread for each core)";
  for (size_t i = 0; topology.core_kinds.size() > 1 && i < topology.core_kinds.size(); ++i) {
    const CoreKind& kind = topology.core_kinds[i];
    reason += (i == 0 ? ", " : " and ") + std::to_string(kind.n_cores) + " of speed " +
              short_number(static_cast<double>(kind.capacity) / CoreKind::kFullCapacity) +
              (kind.capacity < kLeastCapacity ? " (left out)" : "");
  }
  if (topology.quota_cpus) {
    reason += ", cgroup quota of " + short_number(*topology.quota_cpus) + " processors";
    const double quota = std::min(*topology.quota_cpus, 1e6);
    advice.n_threads = std::min(advice.n_threads, std::max(1, static_cast<int32_t>(quota)));
  }
  if (topology.numa_nodes.size() > 1) {
    reason += ", " + count_of(static_cast<int64_t>(topology.numa_nodes.size()), "NUMA node");
  }
  advice.reason = count_of(advice.n_threads, "thread") + ": " + reason;
  return advice;
}

std::vector<ThreadPlace> place_threads(const Topology& topology, int32_t n_threads) {
  if (topology.core_kinds.size() < 2 || n_threads > topology.n_cores) return {};
  std::vector<ThreadPlace> places;
  for (const CoreKind& kind : topology.core_kinds) {
    for (int32_t i = 0; i < kind.n_cores && std::ssize(places) < n_threads; ++i) {
      places.push_back({.cpus = kind.cpus, .weight = kind.capacity});
    }
  }
  return places;
}

}  // namespace candor::platform
