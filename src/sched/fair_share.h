#pragma once
// How much each key (a user, say) was served while it had something in work, so that the least served is admitted next:
// the virtual token counter of Sheng et al., "Fairness in serving large language models" (OSDI 2024). A key that comes
// back starts at the least count among those present: neither credit nor debt outlives its work. Integers only.

#include <cstdint>
#include <vector>

namespace candor::sched {

class FairShare {
 public:
  // One more sequence of `key` is in work.
  void open(uint64_t key);
  // One less. REQUIRES: open() was called for it.
  void close(uint64_t key);
  void charge(uint64_t key, int64_t amount);
  int64_t served(uint64_t key) const;
  int32_t n_keys() const { return static_cast<int32_t>(shares_.size()); }

 private:
  struct Share {
    uint64_t key = 0;
    int32_t n_open = 0;
    int64_t served = 0;
  };
  Share& share_of(uint64_t key);

  // Engine thread only.
  std::vector<Share> shares_;  // of the keys in work
};

}  // namespace candor::sched
