#include "sample/explainer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "sample/row_passes.h"

namespace candor::sample {
namespace {

constexpr size_t kRemembered = 256;  // of the best before a stage: what it cut is looked for among them

float shown_logit(const Candidate& candidate, const Candidates& candidates) {
  return static_cast<float>(static_cast<double>(candidate.logit) + candidates.offset());
}

StageView::Candidate shown(const Candidate& candidate, const Candidates& candidates, double total) {
  return {candidate.token, shown_logit(candidate, candidates), static_cast<double>(candidate.weight) / total};
}

bool changes_logits(std::string_view stage) {
  return stage == "bans" || stage == "penalties" || stage == "dry";
}

std::int64_t count_of(std::span<const TokenId> tokens, TokenId token) {
  return std::ranges::count(tokens, token);
}

}  // namespace

void Explainer::begin(TokenExplanation& explanation, const History& history, const BanParams& bans) {
  explanation_ = &explanation;
  history_ = history;
  std::vector<TokenId> tokens(history.tokens.begin(), history.tokens.end());
  for (const TokenBias& bias : bans.biases) tokens.push_back(bias.token);
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  watched_.clear();
  for (const TokenId token : tokens) watched_.push_back({token, -kInfinity});
  before_.clear();
}

void Explainer::on_stage(std::string_view name, Candidates& candidates) {
  const bool is_first = explanation_->stages.empty();
  StageView& stage = explanation_->stages.emplace_back();
  stage.name = name;
  stage.n_left = static_cast<std::int64_t>(candidates.count());
  const double total = static_cast<double>(candidates.weigh());
  show_best(candidates, total, stage);
  if (!is_first) tell_the_missing(candidates, total, stage);
  if (!is_first && changes_logits(name)) tell_the_changed(candidates, stage);
  remember(candidates, total);
}

void Explainer::show_best(Candidates& candidates, double total, StageView& stage) const {
  const size_t n = std::min(n_shown_, static_cast<size_t>(stage.n_left));
  for (size_t rank = 0; rank < n; ++rank) stage.best.push_back(shown(candidates.at(rank), candidates, total));
}

void Explainer::tell_the_missing(Candidates& candidates, double total, StageView& stage) const {
  for (size_t i = 0; i < before_.size(); ++i) {
    const StageView::Candidate& was = before_[i];
    if (std::ranges::find(stage.best, was.token, &StageView::Candidate::token) != stage.best.end()) continue;
    const auto is = candidates.look(was.token);
    if (is && i < n_shown_) stage.lowered.push_back(shown(*is, candidates, total));
    if (!is && stage.cut.size() < n_shown_) stage.cut.push_back(was);
  }
  const std::int64_t n_before = explanation_->stages[explanation_->stages.size() - 2].n_left;
  if (stage.n_left == n_before || changes_logits(stage.name)) return;
  // What is left has the weights that it had, in units of its own greatest one.
  const double scale = std::exp(static_cast<double>(candidates.max_logit()) - greatest_before_);
  stage.cut_probability = std::clamp(1.0 - scale * total / total_before_, 0.0, 1.0);
}

void Explainer::tell_the_changed(Candidates& candidates, StageView& stage) {
  for (const Watched& was : watched_) {
    const auto is = candidates.look(was.token);
    if (!is || was.logit == -kInfinity) continue;
    const float logit = shown_logit(*is, candidates);
    if (logit == was.logit) continue;
    stage.changed.push_back({was.token, was.logit, logit, count_of(history_.tokens, was.token),
                             count_of(history_.output(), was.token)});
  }
  const auto before = &StageView::Change::before;
  std::ranges::stable_sort(stage.changed, std::ranges::greater(), before);
  stage.n_changed = static_cast<std::int64_t>(stage.changed.size());
  if (stage.changed.size() > n_shown_) stage.changed.resize(n_shown_);
}

void Explainer::remember(Candidates& candidates, double total) {
  before_.clear();
  const size_t n = std::min(std::max(kRemembered, n_shown_), candidates.count());
  for (size_t rank = 0; rank < n; ++rank) before_.push_back(shown(candidates.at(rank), candidates, total));
  for (Watched& watched : watched_) {
    const auto is = candidates.look(watched.token);
    watched.logit = is ? shown_logit(*is, candidates) : -kInfinity;
  }
  total_before_ = total;
  greatest_before_ = static_cast<double>(candidates.max_logit());
}

}  // namespace candor::sample
