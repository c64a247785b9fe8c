#pragma once
// What one input of a fuzz target may cost: processor time of all threads of the process, and growth of its resident
// memory at the worst moment. An input above its bounds ends the process with a message, as a crash would, so that
// libFuzzer keeps it and a replay fails; one that goes on for much longer is ended where it runs (SIGPROF).
// Stands at the top of LLVMFuzzerTestOneInput, behind what is made once for all inputs. Sanitized builds get kSanitized
// times as much.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace candor::testing {

#ifdef CANDOR_SANITIZED
inline constexpr int kSanitized = 8;
#else
inline constexpr int kSanitized = 1;
#endif

struct FuzzBounds {
  double cpu_s = 2;
  int64_t more_bytes = int64_t{64} << 20;
};

class FuzzBudget {
 public:
  explicit FuzzBudget(size_t n_input_bytes, const FuzzBounds& bounds = {})
      : n_input_bytes_(n_input_bytes), bounds_(bounds) {
    forget_peak();
    cpu_before_s_ = cpu_s();
    peak_before_bytes_ = peak_bytes();
    set_timer();
  }
  FuzzBudget(const FuzzBudget&) = delete;
  FuzzBudget& operator=(const FuzzBudget&) = delete;
  ~FuzzBudget() {
    setitimer(ITIMER_PROF, &kNoTimer, nullptr);
    const double took_s = cpu_s() - cpu_before_s_;
    const int64_t grew_bytes = peak_bytes() - peak_before_bytes_;
    if (took_s <= bounds_.cpu_s * kSanitized && grew_bytes <= bounds_.more_bytes * kSanitized) return;
    std::fprintf(stderr,
                 "fuzz: an input of %zu bytes took %.2f s of CPU (at most %.0f) and %.0f MB more (at most %.0f)\n",
                 n_input_bytes_, took_s, bounds_.cpu_s * kSanitized, megabytes(grew_bytes),
                 megabytes(bounds_.more_bytes) * kSanitized);
    std::abort();
  }

  // An input that asks for work, and gets it, may cost more than one that is refused.
  void allow(const FuzzBounds& bounds) {
    bounds_ = bounds;
    set_timer();
  }

 private:
  static constexpr itimerval kNoTimer{};
  static constexpr int kHangs = 4;  // times the bound

  static double megabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-6; }
  static double cpu_s() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
  static int64_t peak_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return int64_t{usage.ru_maxrss} * 1024;
  }
  // The kernel's highest resident size begins anew. Where this is not allowed only a new highest counts.
  static void forget_peak() {
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, "5", 1) != 1) std::perror("fuzz: /proc/self/clear_refs");
    close(file);
  }
  void set_timer() const {
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(bounds_.cpu_s * kSanitized * kHangs);
    setitimer(ITIMER_PROF, &timer, nullptr);
  }

  const size_t n_input_bytes_;
  FuzzBounds bounds_;
  double cpu_before_s_ = 0;
  int64_t peak_before_bytes_ = 0;
};

}  // namespace candor::testing
