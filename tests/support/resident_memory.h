#pragma once
// Memory of this process that is resident: what it holds and, unless a test returns that to the system first, what the
// allocator keeps for later.

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace candor::testing {

inline int64_t resident_bytes() {
  int64_t all_pages = 0;
  int64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

}  // namespace candor::testing
