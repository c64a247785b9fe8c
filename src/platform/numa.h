#pragma once
// Processes that share a machine of several NUMA domains: which processors and which memory each is bound to, and the
// calls that bind. A domain counts where it has processors and memory that this process may use. Planning reads a
// Topology alone, so that tests plan for machines of their own.

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "platform/topology.h"

namespace candor::platform {

// One bit a domain, as the system's calls take it; Linux has at most 1024.
using NodeMask = std::array<unsigned long, 16>;

struct ProcessPlace {
  std::vector<int32_t> cpus;   // none: wherever the system likes
  std::vector<int32_t> nodes;  // whose memory it takes; none: wherever the system likes
  int32_t n_threads = 1;
};

// Domains that count, in the order of their numbers.
std::vector<NumaNode> usable_domains(const Topology& topology);

// A process for each domain, where there are several, each is worth half of the largest at least, and the cgroup grants
// a processor to each; else 1. Processes have equal parts of a model, and wait for the slowest.
int32_t advise_processes(const Topology& topology);

// The places of n_processes >= 1, in order, where all of them together have n_threads (each has one at least). Those of
// neighbouring numbers share a domain where there are more processes than domains; one has several where there are
// fewer. Threads are shared out by cores. A single process, and those of a single domain, are not bound; memory is not
// where one domain has less than seven eighths of another's.
std::vector<ProcessPlace> place_processes(const Topology& topology, int32_t n_processes, int32_t n_threads);

// Binds the calling thread and those that it starts: where they run, and whose memory they take. What the system
// refuses (containers may refuse the second) changes nothing.
void bind_to(const ProcessPlace& place);

// What the calling thread was bound to before is what it is bound to afterwards. Ends on the thread that it began on.
class ScopedPlace {
 public:
  ScopedPlace();
  ~ScopedPlace();
  ScopedPlace(const ScopedPlace&) = delete;
  ScopedPlace& operator=(const ScopedPlace&) = delete;

 private:
  std::vector<int32_t> cpus_;
  int memory_mode_ = 0;
  NodeMask nodes_{};
};

// Where the system lets a process's main thread run, as /proc states it; none where it cannot be read.
std::vector<int32_t> cpus_of_process(int32_t pid, const std::filesystem::path& root = "/");

}  // namespace candor::platform
