#pragma once
// Proposes guesses for the sequences that decode, before each step is planned: as many as pay by the engine's step
// costs and by how many came true so far. Engine thread only.

#include <vector>

#include "engine/request_table.h"
#include "sched/cost_model.h"
#include "sched/scheduler.h"

namespace candor::engine {

class Speculator {
 public:
  // At most max_guesses in a step over all sequences; 0 = never any.
  Speculator(const sched::CostModel& costs, int32_t max_guesses);

  // Sets the drafts of the coming step.
  void propose(sched::Scheduler& scheduler, RequestTable& requests);

 private:
  int32_t length_for(const Choice& choice, int32_t most, int32_t n_other_rows) const;

  const sched::CostModel costs_;
  const int32_t max_guesses_;
  std::vector<SequenceId> decoding_;
  std::vector<TokenId> guesses_;
};

}  // namespace candor::engine
