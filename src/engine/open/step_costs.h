#pragma once
// Provides the time that a step is expected to take, by its rows and what they attend to: the scheduler cuts prompts
// into chunks by it, and drafts are made by it. Measured on the loaded model, or given by the caller and checked.

#include "base/error.h"
#include "candor/options.h"
#include "engine/open/loaded_model.h"
#include "sched/cost_model.h"

namespace candor::engine {

// Refuses points that are not ascending or fall, and numbers that are negative, NaN or beyond an hour.
Result<void> check_costs(const StepCosts& costs);
sched::CostModel to_model(const StepCosts& costs);

// Runs steps of several sizes; for a large model that is some seconds. Overwrites the first K/V blocks. REQUIRES:
// nobody uses the model; the caller's float mode is that of the compute threads.
StepCosts measure_costs(LoadedModel& loaded);

}  // namespace candor::engine
