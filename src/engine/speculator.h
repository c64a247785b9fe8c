#pragma once
// Proposes guesses for the sequences that decode, before each step is planned: as many as pay by the engine's step
// costs and by how many came true so far. Engine thread only.

#include <memory>
#include <vector>

#include "draft/model_drafter.h"
#include "engine/loaded_model.h"
#include "engine/request_table.h"
#include "sched/cost_model.h"
#include "sched/scheduler.h"

namespace candor::engine {

class Speculator {
 public:
  // Borrows the models. Guesses only where the options ask for it.
  Speculator(LoadedModel& loaded, const sched::CostModel& costs);

  // Sets the drafts of the coming step.
  void propose(sched::Scheduler& scheduler, RequestTable& requests);

 private:
  void find_decoding(const sched::Scheduler& scheduler);
  void ask(const sched::Scheduler& scheduler, RequestTable& requests);
  draft::DraftRequest& next_ask();
  bool may_begin(const Choice& choice, const sched::Sequence& sequence) const;
  int32_t length_for(const Choice& choice, int32_t most, int32_t n_other_rows) const;

  // Constant after construction.
  const sched::CostModel costs_;
  const double guess_ns_;      // of the drafter, for one
  const int32_t max_guesses_;  // in a step over all sequences; 0 = never any
  // Engine thread only.
  std::unique_ptr<draft::ModelDrafter> drafter_;  // nullptr: by n-grams
  std::vector<SequenceId> decoding_;
  std::vector<draft::DraftRequest> asks_;  // the first n_asks_ are in use
  size_t n_asks_ = 0;
};

}  // namespace candor::engine
