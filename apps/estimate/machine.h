#pragma once
// The machine of an estimate: this one by its measured limits, or a known one by its published ones.

#include <string>
#include <vector>

#include "apps/estimate/options.h"
#include "apps/estimate/subject.h"
#include "base/error.h"
#include "model/cost.h"
#include "tensor/dtype.h"

namespace candor::apps {

struct Machine {
  std::string name;  // "this", "h100"
  std::string description = {};
  model::Hardware rates = {};   // of one device, as reached
  std::string rates_text = {};  // before what is not reached
  bool is_this = false;

  // Where most weights are of that arithmetic. Published machines have one rate.
  model::Hardware rates_of(Arithmetic arithmetic) const;
  std::vector<double> flops_by_arithmetic{};  // of this machine, as reached, in the order of kArithmetics
};

// Measures this machine where that was not done before, which takes a second. The subject's weights decide which
// arithmetic counts here; attention's is bf16.
Result<Machine> choose_machine(const EstimateOptions& options, const Subject& subject);

}  // namespace candor::apps
