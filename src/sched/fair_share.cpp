#include "sched/fair_share.h"

#include <algorithm>

#include "base/error.h"

namespace candor::sched {

void FairShare::open(uint64_t key) {
  const auto it = std::ranges::find(shares_, key, &Share::key);
  if (it != shares_.end()) {
    ++it->n_open;
    return;
  }
  const auto least = std::ranges::min_element(shares_, {}, &Share::served);
  shares_.push_back({key, 1, least == shares_.end() ? 0 : least->served});
}

void FairShare::close(uint64_t key) {
  Share& share = share_of(key);
  if (--share.n_open > 0) return;
  share = shares_.back();
  shares_.pop_back();
}

void FairShare::charge(uint64_t key, int64_t amount) {
  share_of(key).served += amount;
}

int64_t FairShare::served(uint64_t key) const {
  const auto it = std::ranges::find(shares_, key, &Share::key);
  return it == shares_.end() ? 0 : it->served;
}

FairShare::Share& FairShare::share_of(uint64_t key) {
  const auto it = std::ranges::find(shares_, key, &Share::key);
  CANDOR_CHECK(it != shares_.end());
  return *it;
}

}  // namespace candor::sched
