#include "engine/step/explainer.h"

#include <algorithm>

namespace candor::engine {
namespace {

constexpr size_t kShown = 8;

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
}

}  // namespace candor::engine
