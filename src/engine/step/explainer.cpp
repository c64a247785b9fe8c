#include "engine/step/explainer.h"

#include <algorithm>
#include <cstdint>

namespace candor::engine {
namespace {

constexpr size_t kShown = 8;

// Of the best of the stage before, those that are not among the best of this one.
void tell_the_missing(const StageView& before, sample::Candidates& candidates, double total, StageView& stage) {
  for (const StageView::Candidate& was : before.best) {
    if (std::ranges::find(stage.best, was.token, &StageView::Candidate::token) != stage.best.end()) continue;
    if (const auto is = candidates.look(was.token)) {
      stage.lowered.push_back({is->token, is->logit, static_cast<double>(is->weight) / total});
    } else {
      stage.cut.push_back(was);
    }
  }
}

}  // namespace

void Explainer::on_stage(std::string_view name, sample::Candidates& candidates) {
  StageView& stage = explanation_->stages.emplace_back();
  stage.name = name;
  const size_t n_left = candidates.count();
  stage.n_left = static_cast<std::int64_t>(n_left);
  const double total = static_cast<double>(candidates.weigh());
  for (size_t rank = 0; rank < std::min(kShown, n_left); ++rank) {
    const sample::Candidate candidate = candidates.at(rank);
    stage.best.push_back({candidate.token, candidate.logit, static_cast<double>(candidate.weight) / total});
  }
  const auto& stages = explanation_->stages;
  if (stages.size() > 1) tell_the_missing(stages[stages.size() - 2], candidates, total, stage);
}

}  // namespace candor::engine
