#pragma once
// A flag that says whether a rank is in an exchange at this moment. The rank's own thread sets it. The thread that
// carries the rank's bytes to other hosts (mpi/carrier.h) polls often during an exchange; otherwise it sleeps until one
// begins.

#include <atomic>
#include <cstdint>

#include "platform/futex.h"

namespace candor::comm {

class ExchangeSign {
 public:
  // The rank's own thread, when an exchange begins and when it ends.
  void change() noexcept {
    n_changes_.fetch_add(1);
    if (is_watched_.load() != 0) platform::futex_wake_shared(n_changes_);
  }
  bool is_running() const noexcept { return n_changes_.load(std::memory_order_acquire) % 2 == 1; }

  // One other thread: until an exchange begins, or for that long.
  void wait_for_one(int64_t most_ns) noexcept {
    is_watched_.store(1);
    const uint32_t seen = n_changes_.load();
    if (seen % 2 == 0) platform::futex_wait_shared(n_changes_, seen, most_ns);
    is_watched_.store(0);
  }

 private:
  std::atomic<uint32_t> n_changes_{0};
  std::atomic<uint32_t> is_watched_{0};
};

}  // namespace candor::comm
