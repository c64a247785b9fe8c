#pragma once
// The figures of an estimate, as `candor estimate --json` prints them: times in ms, sizes in bytes.

#include <nlohmann/json_fwd.hpp>

#include "apps/estimate/machine.h"
#include "apps/estimate/options.h"
#include "apps/estimate/subject.h"
#include "apps/estimate/subject_image.h"

namespace candor::apps {

// image: nullptr where the prompts have none.
nlohmann::ordered_json estimate_figures(const Subject& subject, const SubjectImage* image, const Machine& machine,
                                        const EstimateOptions& options);

// The same on the model itself, on this machine. Loads it; the loop without a K/V cache is measured at its first and
// its last token.
Result<nlohmann::ordered_json> measured_figures(const Subject& subject, const SubjectImage* image,
                                                const EstimateOptions& options);

}  // namespace candor::apps
