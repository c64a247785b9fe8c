#include "apps/bench/draft_gains.h"

#include "draft/draft_length.h"
#include "engine/open/step_costs.h"
#include "sched/cost_model.h"

namespace candor::apps {
namespace {

// Of a step that checks so many drafts of each sequence, without the time in which they are made.
double step_ms(const sched::CostModel& model, const DraftCase& drafted, int32_t n_drafts) {
  sched::StepWork work;
  for (int32_t i = 0; i < drafted.n_together; ++i) {
    work.begin_sequence(drafted.n_past);
    work.add_rows(drafted.n_past, 1 + n_drafts);
  }
  work.n_out_rows = work.n_rows;
  return static_cast<double>(model.step_ns(work)) * 1e-6;
}

}  // namespace

DraftGain best_gain(const StepCosts& costs, const DraftCase& drafted) {
  const sched::CostModel model = engine::to_model(costs);
  const double plain_ms = step_ms(model, drafted, 0);
  DraftGain best;
  double n_tokens = 1.0;  // that a step gives: 1 + share + share^2 + ...
  double chance = 1.0;
  for (int32_t n = 1; n <= draft::kMaxDrafts; ++n) {
    chance *= drafted.acceptance;
    n_tokens += chance;
    const double ms = step_ms(model, drafted, n) + n * costs.draft_ms;
    const double ratio = ms > 0.0 ? n_tokens * plain_ms / ms : 1.0;
    if (ratio > best.ratio) best = {n, ratio};
  }
  return best;
}

}  // namespace candor::apps
