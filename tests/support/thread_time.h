#pragma once
// Processor time that tells linear from quadratic.

#include <ctime>

namespace candor::testing {

// A bound for a megabyte of anything: ten and more times what is needed, a hundredth of what a quadratic step takes.
#ifdef CANDOR_SANITIZED
inline constexpr double kSecondsAMegabyte = 60.0;
#else
inline constexpr double kSecondsAMegabyte = 3.0;
#endif

// Of this thread: other work on the machine does not count.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace candor::testing
