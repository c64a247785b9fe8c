#pragma once
// Proposes draft tokens for the sequences that decode, before each step is planned: for each by the drafter that gains
// most, as many as pay by the engine's costs and by how many of its drafts were accepted so far. A draft is charged
// what it adds to the step, for each sequence that waits for the step. A draft model's own passes are charged too: the
// tokens that it drafts, and those of the text that it has yet to prefill, where others drafted meanwhile as well. The
// cost of masks is not counted (some 10 us a draft at 128 000 tokens); where masks are slow nothing is drafted. Engine
// thread only.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "candor/drafts.h"
#include "constrain/mask_worker.h"
#include "draft/draft_length.h"
#include "draft/drafter.h"
#include "draft/drafter_pick.h"
#include "engine/open/loaded_model.h"
#include "engine/request/active_request.h"
#include "engine/request/request_table.h"
#include "sched/cost_model.h"
#include "sched/scheduler.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace candor::engine {

// A drafter of an engine: what its drafts cost, how good they are, and what it is asked for in the step in the making.
struct ActiveDrafter {
  DraftSource source = DraftSource::kNgram;
  std::unique_ptr<draft::Drafter> drafter{};
  double draft_ns = 0.0;    // of its own model, for one draft
  double read_ns = 0.0;     // for each token that it reads before
  double attend_ns = 0.0;   // and for each position that a draft looks at,
  int64_t n_positions = 0;  // of which there are so many at most
  double n_drafting = 1.0;  // sequences that share the making of drafts: those of the step before, one at least
  double usual_share = draft::kUsualShare;  // of its drafts that are accepted
  draft::DraftCosts costs{};                // for the sequence in question
  std::vector<draft::DraftRequest> asks{};  // the first n_asks are in use
  size_t n_asks = 0;

  std::span<draft::DraftRequest> asked() { return std::span(asks).first(n_asks); }
};

class Speculator {
 public:
  // Borrows the models and the worker. Drafts by all ways that the options name, and what callers predict: with up to
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
  draft::DraftCosts checking_costs(const sched::Sequence& sequence) const;
  draft::DraftCosts costs_of(const ActiveDrafter& drafter, const sched::Sequence& sequence,
                             const draft::DraftCosts& checking) const;
  void ask_for(const sched::Sequence& sequence, ActiveRequest& request);
  // Who may draft for the choice, and what it costs.
  void find_candidates(const sched::Sequence& sequence, const Choice& choice, const draft::DraftCosts& checking);
  void begin_ask(const sched::Sequence& sequence, const ActiveRequest& request, const Choice& choice);
  void keep_ask(DraftSource source);
  void share_gains(Choice& choice, double plain_ns);
  bool may_draft(const ActiveDrafter& drafter, const Choice& choice);
  void show(draft::Drafter& drafter, const sched::StepPlan& plan, RequestTable& requests);

  // Constant after construction.
  const LoadedModel& loaded_;
  const sched::CostModel costs_;
  const int32_t max_drafts_;     // in a step over all sequences; 0 = never any
  const int32_t max_predicted_;  // the same, of what callers predict
  constrain::MaskWorker& masks_;
  // Engine thread only.
  std::vector<ActiveDrafter> drafters_;
  std::vector<draft::Candidate> candidates_;  // of the sequence in question
  draft::DraftRequest coming_;                // its request
  std::vector<SequenceId> decoding_;
  std::vector<SequenceId> predicted_;  // of them, those with a prediction that was right so far
  int32_t n_left_ = 0;                 // drafts, in the step in the making
  int32_t n_rows_ = 0;                 // of it
  double pool_ns_ = 0.0;               // what drafts have gained and nobody has spent
};

}  // namespace candor::engine
