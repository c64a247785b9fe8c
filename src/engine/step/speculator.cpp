#include "engine/step/speculator.h"

#include <algorithm>
#include <span>

#include "backend/op_specs.h"
#include "base/checked.h"
#include "candor/options.h"
#include "draft/ngram_drafter.h"
#include "engine/open/draft_model.h"
#include "engine/open/memory_plan.h"
#include "sched/step_plan.h"

namespace candor::engine {
namespace {

// In steps without drafts: what a text keeps of its gains, what is lent to a new one, and what is kept to be lent.
constexpr double kKeptSteps = 4.0;
constexpr double kLentSteps = 4.0;
constexpr double kPoolSteps = 200.0;
constexpr double kNewTextWeight = 0.01;  // of a text's share of accepted drafts, among all texts', at each step

double draft_cost(const LoadedModel& loaded, double StepCosts::*ms) {
  return loaded.draft && loaded.options.costs ? *loaded.options.costs.*ms * 1e6 : 0.0;
}

// What attention to one position takes grows with it.
double attention_width(const model::ArchSpec& spec) {
  double width = 0.0;
  for (const model::BlockSpec& block : spec.blocks) width += block.attn.n_heads * block.attn.head_dim;
  return width;
}

// The draft model's was not measured: the model's own, by the widths of both.
double draft_attend_ns(const LoadedModel& loaded) {
  if (!loaded.draft || !loaded.options.costs) return 0.0;
  const double own = std::max(1.0, attention_width(loaded.model->spec()));
  const double position_ns = loaded.options.costs->look_back_ns + loaded.options.costs->attend_ns;
  return position_ns * attention_width(loaded.draft->model->spec()) / own;
}

// The state behind each draft needs a slot of its own.
int32_t predicted_rows(const LoadedModel& loaded, int32_t max_shown_rows) {
  if (!loaded.options.use_kv_cache) return 0;
  return max_drafts(loaded.options) + (loaded.kv->n_states() > 0 ? 0 : max_shown_rows);
}

std::span<const TokenId> rest_of_prediction(const Choice& choice) {
  const auto predicted = std::span(choice.predicted);
  return predicted.subspan(std::min(predicted.size(), static_cast<size_t>(choice.n_made)));
}

}  // namespace

Speculator::Speculator(LoadedModel& loaded, const sched::CostModel& costs, constrain::MaskWorker& masks,
                       int32_t max_shown_rows)
    : loaded_(loaded),
      costs_(costs),
      draft_ns_(draft_cost(loaded, &StepCosts::draft_ms)),
      read_ns_(draft_cost(loaded, &StepCosts::draft_read_ms)),
      attend_ns_(draft_attend_ns(loaded)),
      draft_positions_(loaded.draft ? int64_t{loaded.draft->slots.slot_blocks} * backend::kBlockTokens : 0),
      max_drafts_(max_drafts(loaded.options)),
      max_predicted_(predicted_rows(loaded, max_shown_rows)),
      masks_(masks),
      drafter_(loaded.draft ? make_drafter(loaded) : std::make_unique<draft::NgramDrafter>()) {
  asks_.reserve(static_cast<size_t>(loaded.options.max_running));
}

// Of a step of n_rows, one of them the sequence's, with so many drafts of it more.
int64_t Speculator::step_ns(const sched::Sequence& sequence, int32_t n_rows, int32_t n_drafts) const {
  const int64_t n_past = sequence.n_tokens() - 1;
  sched::StepWork work{.n_rows = n_rows - 1, .n_out_rows = n_rows + n_drafts};
  work.begin_sequence(n_past);
  work.add_rows(n_past, 1 + n_drafts);
  return costs_.step_ns(work);
}

// What is added to a step of n_rows, of which everyone in it has to wait.
draft::DraftCosts Speculator::costs_of(const sched::Sequence& sequence, int32_t n_rows) const {
  const int64_t n_past = sequence.n_tokens() - 1;
  const auto with_drafts = [&](int32_t n) { return static_cast<double>(step_ns(sequence, n_rows, n)); };
  const double n_waiting = static_cast<double>(decoding_.size());
  const double looking_ns = attend_ns_ * static_cast<double>(std::min(n_past, draft_positions_));
  const size_t n_behind = drafter_->n_behind(sequence.id, static_cast<size_t>(sequence.n_tokens()));
  const double reading_ns = n_waiting * read_ns_ * static_cast<double>(n_behind - 1);
  draft::DraftCosts costs{.plain = with_drafts(0)};
  for (int32_t n = 1; n <= draft::kMaxDrafts; ++n) {
    const double checking_ns = with_drafts(n) - costs.plain;
    const double making_ns = (draft_ns_ / n_drafting_ + looking_ns) * n;
    costs.extra[static_cast<size_t>(n)] = reading_ns + n_waiting * (checking_ns + making_ns);
  }
  return costs;
}

void Speculator::find_decoding(const sched::Scheduler& scheduler) {
  decoding_.clear();
  for (int32_t i = 0; i < scheduler.n_running(); ++i) {
    if (scheduler.running(i).n_pending() == 1) decoding_.push_back(scheduler.running(i).id);
  }
}

draft::DraftRequest& Speculator::next_ask() {
  if (n_asks_ == asks_.size()) asks_.emplace_back();
  draft::DraftRequest& request = asks_[n_asks_++];
  request.drafts.clear();
  return request;
}

// As many as keep the step near the pace of the others that decode.
int32_t Speculator::n_predicted(const sched::Sequence& sequence, int32_t n_most) const {
  if (decoding_.size() == predicted_.size()) return n_most;
  const int64_t limit_ns = step_ns(sequence, n_rows_, 0) * sched::kStretchPercent / 100;
  int32_t n = 0;
  while (n < n_most && step_ns(sequence, n_rows_, n + 1) <= limit_ns) ++n;
  return n;
}

void Speculator::draft_predicted(sched::Scheduler& scheduler, RequestTable& requests) {
  predicted_.clear();
  const auto rest_of = [&](SequenceId id) {
    ActiveRequest& request = requests.of(id);
    if (request.beams) return std::span<const TokenId>();
    return rest_of_prediction(request.choice(static_cast<int32_t>(id - request.id)));
  };
  for (const SequenceId id : decoding_) {
    if (!rest_of(id).empty()) predicted_.push_back(id);
  }
  int32_t n_left = max_predicted_;
  auto n_waiting = static_cast<int32_t>(predicted_.size());
  for (const SequenceId id : predicted_) {
    const auto rest = rest_of(id);
    const int32_t share = std::min(static_cast<int32_t>(rest.size()), ceil_div(n_left, n_waiting--));
    const int32_t n = n_predicted(*scheduler.find(id), share);
    scheduler.set_draft(id, rest.first(static_cast<size_t>(n)));
    n_left -= n;
    n_rows_ += n;
  }
  n_left_ = std::max(0, max_drafts_ - (max_predicted_ - n_left));
}

void Speculator::ask(const sched::Scheduler& scheduler, RequestTable& requests) {
  n_asks_ = 0;
  for (const SequenceId id : decoding_) {
    if (std::ranges::find(predicted_, id) != predicted_.end()) continue;
    ActiveRequest& request = requests.of(id);
    if (request.rules.may_speculate) ask_for(*scheduler.find(id), request);
  }
  n_drafting_ = static_cast<double>(std::max<size_t>(1, n_asks_));
}

void Speculator::ask_for(const sched::Sequence& sequence, ActiveRequest& request) {
  const int32_t index = static_cast<int32_t>(sequence.id - request.id);
  Choice& choice = request.choice(index);
  const draft::DraftCosts costs = costs_of(sequence, n_rows_);
  share_gains(choice, choice.draft_length, costs.plain);
  int32_t n = choice.draft_length.choose(n_left_, costs);
  if (n > 0 && !may_draft(choice)) n = 0;
  int32_t n_drafted = n;
  if (n > 0) {
    draft::DraftRequest& asked = next_ask();
    asked.sequence = sequence.id;
    asked.text = sequence.tokens;
    asked.n_output = static_cast<size_t>(choice.n_made);
    asked.chain = &request.rules.chain;
    asked.key = {request.rules.seed, static_cast<uint32_t>(index), sequence.next_position()};
    asked.constraint = choice.output.is_reasoning() ? nullptr : choice.constraint.get();
    asked.n_drafts = n;
    n_drafted = drafter_->begin(asked);
  }
  if (n_drafted > 0) usual_share_ += kNewTextWeight * (choice.draft_length.acceptance() - usual_share_);
  choice.draft_length.pay(costs.plain, costs.extra[static_cast<size_t>(n_drafted)]);
  n_left_ -= n_drafted;
  n_rows_ += n_drafted;
}

// A text begins with what others gained, a quarter of it at most, and gives what it does not need itself.
void Speculator::share_gains(const Choice& choice, draft::DraftLength& length, double plain_ns) {
  if (choice.n_made > 1) {
    pool_ns_ = std::min(pool_ns_ + length.give(kKeptSteps * plain_ns), kPoolSteps * plain_ns);
    return;
  }
  length.expect(usual_share_);
  const double lent_ns = std::min(0.25 * pool_ns_, kLentSteps * plain_ns);
  length.lend(lent_ns);
  pool_ns_ -= lent_ns;
}

// Who drafts under the constraint needs it here.
bool Speculator::may_draft(const Choice& choice) {
  if (choice.constraint == nullptr || choice.output.is_reasoning()) return true;
  if (choice.constraint->is_slow()) return false;
  return !drafter_->needs_masks() || (masks_.has(choice.constraint) && !choice.constraint->is_ahead());
}

// Of requests that may be drafted for.
void Speculator::watch(const sched::StepPlan& plan, RequestTable& requests) {
  if (max_drafts_ == 0 || !drafter_->watches()) return;
  const backend::StepBatch batch = plan.batch();
  const backend::RowsView rows = loaded_.model->kept_rows(batch.n_rows());
  for (size_t i = 0; i < plan.slices.size(); ++i) {
    const sched::PlannedSlice& slice = plan.slices[i];
    const auto first = static_cast<size_t>(slice.first_row);
    const auto n_rows = static_cast<size_t>(slice.n_rows);
    const auto n_cols = static_cast<size_t>(rows.n_cols);
    const SequenceId id = slice.sequence->id;
    const bool is_drafted_for = requests.of(id).rules.may_speculate && !requests.of(id).beams;
    if (!is_drafted_for) continue;
    drafter_->watch({id, batch.seqs[i].n_past, batch.tokens.subspan(first, n_rows),
                     std::span(rows.data + first * n_cols, n_rows * n_cols)});
  }
}

void Speculator::forget() noexcept {
  drafter_->forget();
}

void Speculator::propose(sched::Scheduler& scheduler, RequestTable& requests) {
  if (max_predicted_ == 0) return;
  find_decoding(scheduler);
  n_rows_ = static_cast<int32_t>(decoding_.size());
  draft_predicted(scheduler, requests);
  if (max_drafts_ == 0) return;
  ask(scheduler, requests);
  const auto asked = std::span(asks_).first(n_asks_);
  drafter_->propose(asked, &masks_);
  for (const draft::DraftRequest& request : asked) {
    if (!request.drafts.empty()) scheduler.set_draft(request.sequence, request.drafts);
  }
}

}  // namespace candor::engine
