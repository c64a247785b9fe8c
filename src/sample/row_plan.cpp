#include "sample/row_plan.h"

#include <algorithm>
#include <optional>
#include <span>

#include "sample/bans.h"
#include "sample/penalties.h"

namespace candor::sample {
namespace {

// Most draws, and most cuts, end within so many.
constexpr int32_t kUsualBest = 256;

// Of the stages that are left the first that a choice has.
std::optional<Stage> next_stage(const ChainParams& chain, std::span<const Stage> rest) {
  const auto next = std::ranges::find_if(rest, [&](Stage stage) { return takes_part(chain, stage); });
  return next == rest.end() ? std::nullopt : std::optional(*next);
}

// What the rest of the chain will look at of the order.
struct Wanted {
  int32_t n_best = 1;
  bool is_weighed = false;  // all of them
};

// rest: of the stages.
Wanted wanted_by(const ChainParams& chain, std::span<const Stage> rest, int32_t n_vocab) {
  if (chain.is_greedy()) return {};
  if (next_stage(chain, rest) == Stage::kTopK && chain.top_k <= backend::kMostBest) return {chain.top_k, false};
  return {n_vocab <= backend::kMostBest ? n_vocab : kUsualBest, true};
}

// The edits, and of the stages those that look at each logit alone. Returns how many.
size_t plan_stages(const PickRequest& request, EditList& edits, ChainScratch& scratch, backend::RowQuery& query) {
  const ChainParams& chain = request.chain;
  for (size_t i = 0; i < chain.stages.size(); ++i) {
    const Stage stage = chain.stages[i];
    if (!takes_part(chain, stage)) continue;
    if (query.is_scaled) return i;
    if (stage == Stage::kPenalties) {
      apply_penalties(edits, request.history, chain.penalties, scratch.counts);
    } else if (stage == Stage::kDry) {
      apply_dry(edits, request.history, chain.dry, scratch.dry);
    } else if (stage == Stage::kTemperature && chain.temperature_range == 0.0) {
      query.is_scaled = true;
      query.divisor = divisor_of(chain.temperature);
    } else {
      return i;
    }
  }
  return chain.stages.size();
}

// Whether the next stage looks at all candidates.
bool needs_all(const ChainParams& chain, std::span<const Stage> rest) {
  const auto next = next_stage(chain, rest);
  return next == Stage::kTypical || next == Stage::kTemperature || next == Stage::kPenalties || next == Stage::kDry;
}

void add_model(const PickRequest& request, RowPlan& plan) {
  const int32_t n_best = std::max(1, request.n_logprobs);
  backend::RowQuery& choice = plan.choice;
  if (!choice.is_scaled && plan.edits.is_empty()) {
    choice.n_best = std::max(choice.n_best, n_best);
    choice.is_weighed = true;
    return;
  }
  plan.model = {.row = choice.row, .n_vocab = choice.n_vocab, .n_best = n_best, .is_weighed = true};
}

}  // namespace

bool RowPlanner::plan(const PickRequest& request, int32_t row, int32_t n_vocab, RowPlan& plan) {
  const ChainParams& chain = request.chain;
  plan.choice = {.row = row, .n_vocab = n_vocab};
  plan.model.reset();
  edits_.begin(plan.edits, n_vocab);
  if (request.mask != nullptr) edits_.restrict(*request.mask);
  if (chain.bans.is_on()) apply_bans(edits_, request.history, chain.bans);
  plan.n_stages = plan_stages(request, edits_, scratch_, plan.choice);
  const auto rest = std::span(chain.stages).subspan(plan.n_stages);
  if (needs_all(chain, rest)) return false;
  const Wanted wanted = wanted_by(chain, rest, n_vocab);
  plan.choice.n_best = std::min(wanted.n_best, n_vocab);
  plan.choice.is_weighed = wanted.is_weighed;
  plan.choice.mask = plan.edits.mask;
  plan.choice.edited = plan.edits.edited;
  plan.choice.edits = plan.edits.edits;
  if (request.n_logprobs >= 0 && request.logprobs_of == LogprobsOf::kModel) add_model(request, plan);
  return true;
}

}  // namespace candor::sample
