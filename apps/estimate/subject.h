#pragma once
// The model of an estimate: a file, a published model by name, or a number of parameters.

#include <filesystem>
#include <string>

#include "apps/estimate/options.h"
#include "base/error.h"
#include "model/arch_cost.h"
#include "model/arch_spec.h"

namespace candor::apps {

struct Subject {
  std::string name;
  model::ArchSpec spec = {};
  model::ArchCost cost = {};
  std::filesystem::path file = {};
  double bits_per_weight = 0;     // on average
  double unused_parameters = 0;   // in the file, and not computed with
  std::string assumed = {};       // what nobody said, with the options that say it
  std::string assumed_from = {};  // whose shape that is
  bool is_paper = false;          // every parameter counts once a token
};

Result<Subject> choose_subject(const EstimateOptions& options);

}  // namespace candor::apps
