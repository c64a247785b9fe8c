#pragma once
// What steps take, as an earlier start measured it: by machine, kernels, threads, model file and the options that
// decide the sizes of steps (candor/costs.json in the cache folder, the newest of kMostKept). Wrong ones change plans
// and speed, never an answer: what is remembered is held against the steps as they run, and forgotten where it is off.

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "candor/engine.h"

namespace candor::apps {

class RememberedCosts {
 public:
  static constexpr size_t kMostKept = 64;
  static constexpr size_t kSteps = 128;         // that are looked at
  static constexpr double kMostDeviation = 2;  // of the middle one, to either side

  explicit RememberedCosts(const EngineOptions& options);

  // Nothing where none are known, or what is known is no longer read.
  std::optional<StepCosts> recall() const;
  void keep(const StepCosts& costs) const;
  // Each step of an engine that runs on recalled costs. Engine thread.
  void take(const StepReport& report);
  // True once: the steps showed that what was recalled is off by more than kMostDeviation, and it is forgotten.
  bool forget_if_off();

 private:
  const std::string key_;
  std::vector<double> ratios_{};  // engine thread
  std::atomic<bool> is_off_{false};
};

}  // namespace candor::apps
