#include "platform/affinity.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace candor::platform {

void run_on(const std::vector<int32_t>& cpus) {
#if defined(__linux__)
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int32_t cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  sched_setaffinity(0, sizeof(set), &set);
#else
  static_cast<void>(cpus);
#endif
}

}  // namespace candor::platform
