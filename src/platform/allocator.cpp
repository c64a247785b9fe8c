#include "platform/allocator.h"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace candor::platform {

void give_freed_memory_back() {
#ifdef __GLIBC__
  constexpr int kLargeBytes = 256 << 10;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  ::mallopt(M_TRIM_THRESHOLD, kLargeBytes);
  ::mallopt(M_ARENA_MAX, 2);
#endif
}

}  // namespace candor::platform
