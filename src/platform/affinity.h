#pragma once
// Which processors a thread may run on.

#include <cstdint>
#include <vector>

namespace candor::platform {

// On a machine with cores of several kinds: those of one kind, and how fast they are beside others.
struct ThreadPlace {
  std::vector<int32_t> cpus;
  int32_t weight = 1;
};

// Keeps the calling thread to these; none, or what the system refuses, changes nothing.
void run_on(const std::vector<int32_t>& cpus);

}  // namespace candor::platform
