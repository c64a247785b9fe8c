#include "serve/core/step_history.h"

#include <algorithm>

namespace candor::serve {

StepHistory::Newest StepHistory::since(int64_t n_known) const {
  const std::lock_guard lock(mutex_);
  Newest newest{.totals = totals_};
  const int64_t oldest = std::max<int64_t>(0, totals_.n_steps - static_cast<int64_t>(kKept));
  for (int64_t i = std::max(oldest, n_known); i < totals_.n_steps; ++i) {
    newest.steps.push_back(ring_[static_cast<size_t>(i) % kKept]);
  }
  return newest;
}

}  // namespace candor::serve
