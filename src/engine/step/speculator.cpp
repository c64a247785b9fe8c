#include "engine/step/speculator.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

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

std::vector<ActiveDrafter> drafters_of(LoadedModel& loaded) {
  std::vector<ActiveDrafter> drafters;
  if (max_drafts(loaded.options) == 0) return drafters;
  if (drafts_by_ngrams(loaded.options)) {
    drafters.push_back({.source = DraftSource::kNgram, .drafter = std::make_unique<draft::NgramDrafter>()});
  }
  if (loaded.draft) {
    drafters.push_back({.source = loaded.draft->source,
                        .drafter = make_drafter(loaded),
                        .draft_ns = draft_cost(loaded, &StepCosts::draft_ms),
                        .read_ns = draft_cost(loaded, &StepCosts::draft_read_ms),
                        .attend_ns = draft_attend_ns(loaded),
                        .n_positions = int64_t{loaded.draft->slots.slot_blocks} * backend::kBlockTokens});
  }
  return drafters;
}

std::span<const TokenId> rest_of_prediction(const Choice& choice) {
  const auto predicted = std::span(choice.predicted);
  return predicted.subspan(std::min(predicted.size(), static_cast<size_t>(choice.n_made)));
}

Choice& choice_of(RequestTable& requests, SequenceId id) {
  ActiveRequest& request = requests.of(id);
  return request.choice(static_cast<int32_t>(id - request.id));
}

}  // namespace

Speculator::Speculator(LoadedModel& loaded, const sched::CostModel& costs, constrain::MaskWorker& masks,
                       int32_t max_shown_rows)
    : loaded_(loaded),
      costs_(costs),
      max_drafts_(max_drafts(loaded.options)),
      max_predicted_(predicted_rows(loaded, max_shown_rows)),
      masks_(masks),
      drafters_(drafters_of(loaded)) {
  for (ActiveDrafter& drafter : drafters_) drafter.asks.reserve(static_cast<size_t>(loaded.options.max_running));
  candidates_.reserve(drafters_.size());
  coming_.drafts.reserve(static_cast<size_t>(draft::kMaxDrafts));
}

// Of a step of n_rows, one of them the sequence's, with so many drafts of it more.
int64_t Speculator::step_ns(const sched::Sequence& sequence, int32_t n_rows, int32_t n_drafts) const {
  const int64_t n_past = sequence.n_tokens() - 1;
  sched::StepWork work{.n_rows = n_rows - 1, .n_out_rows = n_rows + n_drafts};
  work.begin_sequence(n_past);
  work.add_rows(n_past, 1 + n_drafts);
  return costs_.step_ns(work);
}

// What the verification of drafts adds to the step, of which everyone in it has to wait.
draft::DraftCosts Speculator::checking_costs(const sched::Sequence& sequence) const {
  const auto with_drafts = [&](int32_t n) { return static_cast<double>(step_ns(sequence, n_rows_, n)); };
  const double n_waiting = static_cast<double>(decoding_.size());
  draft::DraftCosts costs{.plain = with_drafts(0)};
  for (int32_t n = 1; n <= draft::kMaxDrafts; ++n) {
    costs.extra[static_cast<size_t>(n)] = n_waiting * (with_drafts(n) - costs.plain);
  }
  return costs;
}

// And what the drafter takes to make them.
draft::DraftCosts Speculator::costs_of(const ActiveDrafter& drafter, const sched::Sequence& sequence,
                                       const draft::DraftCosts& checking) const {
  const int64_t n_past = sequence.n_tokens() - 1;
  const double n_waiting = static_cast<double>(decoding_.size());
  const double looking_ns = drafter.attend_ns * static_cast<double>(std::min(n_past, drafter.n_positions));
  const double making_ns = drafter.draft_ns / drafter.n_drafting + looking_ns;
  const size_t n_behind = drafter.drafter->n_behind(sequence.id, static_cast<size_t>(sequence.n_tokens()));
  draft::DraftCosts costs = checking;
  costs.once = n_waiting * drafter.read_ns * static_cast<double>(n_behind - 1);
  for (int32_t n = 1; n <= draft::kMaxDrafts; ++n) {
    costs.extra[static_cast<size_t>(n)] += costs.once + n_waiting * making_ns * n;
  }
  return costs;
}

void Speculator::find_decoding(const sched::Scheduler& scheduler) {
  decoding_.clear();
  for (int32_t i = 0; i < scheduler.n_running(); ++i) {
    if (scheduler.running(i).n_pending() == 1) decoding_.push_back(scheduler.running(i).id);
  }
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
    return requests.of(id).beams ? std::span<const TokenId>() : rest_of_prediction(choice_of(requests, id));
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
    choice_of(requests, id).drafts.pay({.source = DraftSource::kPrediction, .n_drafts = n});
    n_left -= n;
    n_rows_ += n;
  }
  n_left_ = std::max(0, max_drafts_ - (max_predicted_ - n_left));
}

void Speculator::ask(const sched::Scheduler& scheduler, RequestTable& requests) {
  for (ActiveDrafter& drafter : drafters_) drafter.n_asks = 0;
  for (const SequenceId id : decoding_) {
    if (std::ranges::find(predicted_, id) != predicted_.end()) continue;
    ActiveRequest& request = requests.of(id);
    if (request.rules.may_speculate) ask_for(*scheduler.find(id), request);
  }
  for (ActiveDrafter& drafter : drafters_) {
    drafter.n_drafting = static_cast<double>(std::max<size_t>(1, drafter.n_asks));
  }
}

void Speculator::ask_for(const sched::Sequence& sequence, ActiveRequest& request) {
  Choice& choice = request.choice(static_cast<int32_t>(sequence.id - request.id));
  const draft::DraftCosts checking = checking_costs(sequence);
  share_gains(choice, checking.plain);
  choice.drafts.judge(sequence.tokens, choice.n_made);
  find_candidates(sequence, choice, checking);
  begin_ask(sequence, request, choice);
  const draft::DrafterPick pick = draft::pick_drafter(candidates_, n_left_, choice.drafts, coming_);
  draft::DraftedStep step{.n_drafts = pick.n_drafts, .plain = checking.plain};
  if (pick.n_drafts > 0) {
    step.source = pick.candidate->source;
    step.extra = pick.candidate->costs->extra[static_cast<size_t>(pick.n_drafts)];
    keep_ask(step.source);
  }
  for (const ActiveDrafter& drafter : drafters_) {
    if (step.n_drafts == 0 || drafter.source != step.source) drafter.drafter->keep(sequence.id);
  }
  choice.drafts.pay(step);
  n_left_ -= pick.n_drafts;
  n_rows_ += pick.n_drafts;
}

void Speculator::find_candidates(const sched::Sequence& sequence, const Choice& choice,
                                 const draft::DraftCosts& checking) {
  candidates_.clear();
  for (ActiveDrafter& drafter : drafters_) {
    drafter.costs = costs_of(drafter, sequence, checking);
    if (may_draft(drafter, choice)) candidates_.push_back({drafter.source, drafter.drafter.get(), &drafter.costs});
  }
}

void Speculator::begin_ask(const sched::Sequence& sequence, const ActiveRequest& request, const Choice& choice) {
  const auto index = static_cast<uint32_t>(sequence.id - request.id);
  coming_.sequence = sequence.id;
  coming_.text = sequence.tokens;
  coming_.n_output = static_cast<size_t>(choice.n_made);
  coming_.chain = &request.rules.chain;
  coming_.key = {request.rules.seed, index, sequence.next_position()};
  coming_.constraint = choice.output.is_reasoning() ? nullptr : choice.constraint.get();
}

void Speculator::keep_ask(DraftSource source) {
  ActiveDrafter& drafter = *std::ranges::find(drafters_, source, &ActiveDrafter::source);
  if (drafter.n_asks == drafter.asks.size()) {
    drafter.asks.emplace_back().drafts.reserve(static_cast<size_t>(draft::kMaxDrafts));
  }
  std::swap(drafter.asks[drafter.n_asks++], coming_);
}

// A text begins with what others gained, a quarter of it at most, and gives what it does not need itself.
void Speculator::share_gains(Choice& choice, double plain_ns) {
  if (choice.n_made > 1) {
    pool_ns_ = std::min(pool_ns_ + choice.drafts.give(kKeptSteps * plain_ns), kPoolSteps * plain_ns);
  } else {
    const double lent_ns = std::min(0.25 * pool_ns_, kLentSteps * plain_ns);
    choice.drafts.lend(lent_ns);
    pool_ns_ -= lent_ns;
  }
  for (ActiveDrafter& drafter : drafters_) {
    draft::DraftLength& length = choice.drafts.of(drafter.source);
    if (choice.n_made <= 1) length.expect(drafter.usual_share);
    if (length.take_news()) drafter.usual_share += kNewTextWeight * (length.acceptance() - drafter.usual_share);
  }
}

// Who drafts under the constraint needs it here; a mask is waited for where it is of use.
bool Speculator::may_draft(const ActiveDrafter& drafter, const Choice& choice) {
  if (choice.constraint == nullptr || choice.output.is_reasoning()) return true;
  if (choice.constraint->is_slow()) return false;
  if (!drafter.drafter->needs_masks()) return true;
  const bool is_wanted = choice.drafts.offer(drafter.source, n_left_, drafter.costs).n_drafts > 0 ||
                         choice.drafts.trial(drafter.source, n_left_, drafter.costs).n_drafts > 0;
  return is_wanted && masks_.has(choice.constraint) && !choice.constraint->is_ahead();
}

void Speculator::watch(const sched::StepPlan& plan, RequestTable& requests) {
  for (ActiveDrafter& drafter : drafters_) {
    if (drafter.drafter->watches()) show(*drafter.drafter, plan, requests);
  }
}

// Of requests that may be drafted for.
void Speculator::show(draft::Drafter& drafter, const sched::StepPlan& plan, RequestTable& requests) {
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
    drafter.watch({id, batch.seqs[i].n_past, batch.tokens.subspan(first, n_rows),
                   std::span(rows.data + first * n_cols, n_rows * n_cols)});
  }
}

void Speculator::forget() noexcept {
  for (ActiveDrafter& drafter : drafters_) drafter.drafter->forget();
}

// Drafts are set when all of them are made: an exception leaves none.
void Speculator::propose(sched::Scheduler& scheduler, RequestTable& requests) {
  if (max_predicted_ == 0) return;
  find_decoding(scheduler);
  n_rows_ = static_cast<int32_t>(decoding_.size());
  draft_predicted(scheduler, requests);
  if (drafters_.empty()) return;
  ask(scheduler, requests);
  for (ActiveDrafter& drafter : drafters_) drafter.drafter->propose(drafter.asked(), &masks_);
  for (ActiveDrafter& drafter : drafters_) {
    for (const draft::DraftRequest& request : drafter.asked()) {
      if (!request.drafts.empty()) scheduler.set_draft(request.sequence, request.drafts);
    }
  }
}

}  // namespace candor::engine
