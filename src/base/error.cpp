#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace candor {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "candor: internal error: %s at %s:%d (please report this)\n", condition, file, line);
  std::abort();
}

}  // namespace candor
