#pragma once
// Proposes draft tokens for the sequences that decode, before each step is planned: as many as pay by the engine's
// costs and by how many were accepted so far. A draft is charged what it adds to the step, for each sequence that waits
// for the step. A draft model's own passes are charged too: the tokens that it drafts, and those of the text that it
// has yet to prefill. The cost of masks is not counted (some 10 us a draft at 128 000 tokens); where masks are slow
// nothing is drafted. Engine thread only.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "constrain/mask_worker.h"
#include "draft/draft_length.h"
#include "draft/drafter.h"
#include "engine/open/loaded_model.h"
#include "engine/request/active_request.h"
#include "engine/request/request_table.h"
#include "sched/cost_model.h"
#include "sched/scheduler.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace candor::engine {

class Speculator {
 public:
  // Borrows the models and the worker. Drafts by the way that the options name, and what callers predict: with up to
  // so many rows more in a step where states of drafts need no place.
  Speculator(LoadedModel& loaded, const sched::CostModel& costs, constrain::MaskWorker& masks, int32_t max_shown_rows);

  // Sets the drafts of the coming step.
  void propose(sched::Scheduler& scheduler, RequestTable& requests);
  // What a step has computed, before the next one begins.
  void watch(const sched::StepPlan& plan, RequestTable& requests);
  // After an exception out of propose(), which is then without consequence.
  void forget() noexcept;

 private:
  void find_decoding(const sched::Scheduler& scheduler);
  void ask(const sched::Scheduler& scheduler, RequestTable& requests);
  // Drafts of what callers believe, before any others; the drafters are not asked for these sequences.
  void draft_predicted(sched::Scheduler& scheduler, RequestTable& requests);
  int32_t n_predicted(const sched::Sequence& sequence, int32_t n_most) const;
  int64_t step_ns(const sched::Sequence& sequence, int32_t n_rows, int32_t n_drafts) const;
  draft::DraftRequest& next_ask();
  draft::DraftCosts costs_of(const sched::Sequence& sequence, int32_t n_rows) const;
  void ask_for(const sched::Sequence& sequence, ActiveRequest& request);
  void share_gains(const Choice& choice, draft::DraftLength& length, double plain_ns);
  bool may_draft(const Choice& choice);

  // Constant after construction.
  const LoadedModel& loaded_;
  const sched::CostModel costs_;
  const double draft_ns_;          // of the draft model, for one
  const double read_ns_;           // for each token that it reads before
  const double attend_ns_;         // and for each position that a draft looks at,
  const int64_t draft_positions_;  // of which there are so many at most
  const int32_t max_drafts_;       // in a step over all sequences; 0 = never any
  const int32_t max_predicted_;    // the same, of what callers predict
  constrain::MaskWorker& masks_;
  // Engine thread only.
  std::unique_ptr<draft::Drafter> drafter_;
  std::vector<SequenceId> decoding_;
  std::vector<SequenceId> predicted_;      // of them, those with a prediction that was right so far
  std::vector<draft::DraftRequest> asks_;  // the first n_asks_ are in use
  size_t n_asks_ = 0;
  double n_drafting_ = 1.0;  // sequences that share the making of drafts: those of the step before, one at least
  int32_t n_left_ = 0;       // drafts, in the step in the making
  int32_t n_rows_ = 0;       // of it
  double usual_share_ = draft::kUsualShare;  // of drafts that are accepted
  double pool_ns_ = 0.0;                     // what drafts have gained and nobody has spent
};

}  // namespace candor::engine
