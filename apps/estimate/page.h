#pragma once
// The figures of an estimate for a person: within 80 columns, the estimate in one column and what was measured, where
// it was, in another.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/estimate/subject.h"

namespace candor::apps {

// figures: estimate_figures(), with measured_figures() as its member "measured" where there are any.
std::string estimate_page(const nlohmann::ordered_json& figures, const Subject& subject);

}  // namespace candor::apps
