#pragma once
// The part of an estimate about ranks: what they say to each other, and what it takes of a step.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/estimate/options.h"
#include "apps/estimate/subject.h"
#include "base/error.h"
#include "model/arch_spec.h"
#include "model/rank_cost.h"

namespace candor::apps {

// The mean of all blocks, with weights of that many bits on average.
model::RankShape rank_shape_of(const model::ArchSpec& spec, double bits_per_weight);

// "ranks" of the figures, whose times are those of "devices" devices, one for each rank; nothing without --ranks.
Result<void> add_rank_figures(const EstimateOptions& options, const Subject& subject, nlohmann::ordered_json& figures);
std::string ranks_page(const nlohmann::ordered_json& figures);

}  // namespace candor::apps
