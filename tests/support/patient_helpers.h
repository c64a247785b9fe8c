#pragma once
// Helper processes for tests: they get as much of a processor as ever, and as long as it takes on a busy machine.

#include <chrono>

#include "sandbox/helper_pool.h"

namespace candor::testing {

inline sandbox::HelperOptions patient_helpers() {
  sandbox::HelperOptions options;
  options.job.clock = std::chrono::minutes(5);
  options.vocabulary.clock = std::chrono::minutes(5);
  return options;
}

}  // namespace candor::testing
