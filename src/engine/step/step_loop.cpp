#include "engine/step/step_loop.h"

#include <algorithm>
#include <utility>

#include "draft/verify.h"
#include "engine/open/memory_plan.h"
#include "engine/open/step_costs.h"
#include "platform/float_mode.h"

namespace candor::engine {
namespace {

sched::SchedulerOptions scheduler_options(const LoadedModel& loaded) {
  const EngineOptions& options = loaded.options;
  sched::SchedulerOptions result;
  result.n_ctx = static_cast<int32_t>(options.n_ctx);
  result.n_blocks = options.kv_blocks;
  result.max_running = options.max_running;
  result.max_queued = options.max_running + options.max_queued;  // the inbox counts those that run as well
  result.window_tokens = loaded.window_tokens();
  result.use_prefix_index = options.prefix_cache;
  result.use_kv_cache = options.use_kv_cache;
  if (options.costs) result.costs = to_model(*options.costs);
  return result;
}

sched::StepBudget step_budget(const EngineOptions& options) {
  return {.max_rows = options.max_rows,
          .max_prefill_rows = options.prefill_rows > 0 ? options.prefill_rows : options.max_rows,
          .max_out_rows = options.max_running + max_guesses(options),
          .max_shown_rows = max_shown_rows(options),
          .decode_step_ns = static_cast<int64_t>(options.step_ms * 1e6)};
}

// What a step may wait for masks, all sequences together: a share of what it takes, but what a thread needs to wake up
// in any case.
constexpr int64_t kWaitShare = 4;
constexpr int64_t kLeastWaitNs = 200'000;
constexpr int64_t kMostWaitNs = 1'000'000;
constexpr int64_t kLoneWaitNs = 20'000'000;  // where nobody else waits
// What constraints may take of it to accept tokens: those of usual schemas take some 10 us.
constexpr int64_t kMostAcceptNs = 1'000'000;

double ms_between(int64_t begin_ns, int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-6;
}

}  // namespace

StepLoop::StepLoop(LoadedModel& loaded, Inbox& inbox, MetricStore& metrics, const obs::Clock& clock)
    : loaded_(loaded),
      inbox_(inbox),
      metrics_(metrics),
      clock_(clock),
      budget_(step_budget(loaded.options)),
      masks_([&inbox] { inbox.wake(); }),
      scheduler_(scheduler_options(loaded)),
      speculator_(loaded, scheduler_options(loaded).costs, masks_),
      picker_(*loaded.tokenizer) {
  picked_.reserve(static_cast<size_t>(budget_.max_out_rows));
  outcomes_.reserve(static_cast<size_t>(budget_.max_out_rows));
  kept_.reserve(static_cast<size_t>(budget_.max_out_rows));
  stats_.kv_blocks_total = totals_.kv_blocks_total = loaded.options.kv_blocks;
}

void StepLoop::run() {
  const platform::ScopedFloatMode float_mode;
  InboxBatch batch;
  bool is_open = true;
  while (is_open) {
    try {
      is_open = inbox_.wait(batch, patience_ns());
      if (needs_new_scheduler_) begin_anew();
      take_in(batch);
      if (is_open) step();
    } catch (...) {
      break_down(batch);
    }
  }
  cancel_all();
}

void StepLoop::begin_anew() {
  speculator_.forget();
  scheduler_ = sched::Scheduler(scheduler_options(loaded_));
  needs_new_scheduler_ = false;
}

// How long there is nothing to do unless something arrives: until the next deadline, where all wait for masks.
int64_t StepLoop::patience_ns() const {
  if (needs_new_scheduler_ || scheduler_.is_idle()) return kNever;
  if (!is_stuck_) return 0;
  int64_t until_ns = kNever;
  for (const auto& request : requests_) {
    if (request->deadline_ns == kNever) continue;
    until_ns = until_ns == kNever ? request->deadline_ns : std::min(until_ns, request->deadline_ns);
  }
  return until_ns == kNever ? kNever : std::max<int64_t>(0, until_ns - clock_.now_ns());
}

void StepLoop::step() {
  StepReport report;
  step_began_ns_ = clock_.now_ns();
  accept_left_ns_ = kMostAcceptNs;
  expire();
  pick_kept();
  const int64_t wait_ns = std::clamp(expected_ns_ / kWaitShare, kLeastWaitNs, kMostWaitNs);
  masks_.allow_waiting(requests_.size() == 1 ? kLoneWaitNs : wait_ns);
  propose_guesses();
  is_stuck_ = !compute_step(report) && !kept_.empty() && !masks_.has_unsent();
  report.n_finished = std::exchange(n_finished_now_, 0);
  count(report);
  store_stats();
  report_step(report);
  publish();
}

// False where there was nothing to compute.
bool StepLoop::compute_step(StepReport& report) {
  const sched::StepPlan& plan = scheduler_.plan(budget_);
  const int64_t planned_ns = clock_.now_ns();
  report.n_rows = plan.batch().n_rows();
  report.n_prefill_rows = plan.n_prefill_rows;
  report.n_draft_rows = plan.n_draft_rows;
  report.n_sequences = static_cast<int32_t>(plan.slices.size());
  report.n_preempted = plan.n_preempted;
  report.expected_ms = static_cast<double>(plan.expected_ns) * 1e-6;
  expected_ns_ = plan.expected_ns;
  if (plan.is_empty()) return false;
  const StepResult result = compute(plan);
  token_time_ns_ = clock_.now_ns();
  pick_tokens(plan, result);
  report.n_sampled = static_cast<int32_t>(plan.out_rows.size()) - plan.n_shown_rows;
  scheduler_.commit(outcomes_);
  fork_choices();
  advance_beams();
  send_masks();
  const int64_t end_ns = clock_.now_ns();
  report.plan_ms = ms_between(step_began_ns_, planned_ns);
  report.compute_ms = ms_between(planned_ns, token_time_ns_);
  report.pick_ms = ms_between(token_time_ns_, end_ns);
  metrics_.step_ns.record(static_cast<uint64_t>(end_ns - step_began_ns_));
  metrics_.step_rows.record(static_cast<uint64_t>(report.n_rows));
  return true;
}

void StepLoop::take_in(InboxBatch& batch) {
  for (auto& request : batch.submitted) {
    ++totals_.n_submitted;
    try {
      start(request);
    } catch (...) {
      metrics_.n_faults.add();
      refuse(std::move(request));
    }
  }
  for (const RequestId id : batch.cancelled) cancel(id);
}

// Throws only where it left the request to the caller.
void StepLoop::start(std::unique_ptr<ActiveRequest>& request) {
  ActiveRequest& active = requests_.add(request);
  contain(active, [&] {
    if (active.beams) begin_beams(active);
    if (auto added = scheduler_.add(active.spec); !added) {
      for (int32_t i = 0; i < active.n_choices(); ++i) {
        TokenEvent& event = outbox_.add(active, i);
        event.error = added.error();
        end_choice(active, event, FinishReason::kError);
      }
    }
  });
}

void StepLoop::cancel(RequestId id) {
  ActiveRequest* request = requests_.find(id);
  if (request != nullptr) end_all(*request, FinishReason::kCancelled);  // else it ended by itself in the meantime
}

void StepLoop::cancel_all() {
  for (const auto& request : requests_) end_all(*request, FinishReason::kCancelled);
  store_stats();
  publish();
}

void StepLoop::expire() {
  for (const auto& request : requests_) {
    if (request->deadline_ns == kNever || step_began_ns_ < request->deadline_ns) continue;
    end_all(*request, FinishReason::kDeadline);
  }
}

void StepLoop::end_all(ActiveRequest& request, FinishReason reason) {
  if (request.breakdown) return;
  leave_scheduler(request);
  contain(request, [&] {
    for (int32_t i = 0; i < request.n_choices(); ++i) {
      if (request.choice(i).is_open) end_choice(request, outbox_.add(request, i), reason);
    }
  });
}

void StepLoop::leave_scheduler(ActiveRequest& request) {
  for (int32_t i = 0; i < request.n_sequences(); ++i) {
    if (const sched::Sequence* sequence = scheduler_.find(request.sequence_of(i))) {
      count_usage(request, *sequence, 0);
      scheduler_.remove(sequence->id);
    }
  }
  std::erase_if(kept_, [&](SequenceId id) { return request.has_sequence(id); });
}

StepResult StepLoop::compute(const sched::StepPlan& plan) {
  for (const sched::PlannedSlice& slice : plan.slices) requests_.of(slice.sequence->id).watch.on_rows(step_began_ns_);
  for (const kv::BlockCopy& copy : plan.copies) loaded_.kv->copy_block(copy.src, copy.dst, copy.n_tokens);
  StepResult result{.plan = &plan};
  result.logits = loaded_.backend->wait(loaded_.model->launch(plan.batch(), *loaded_.kv));
  if (!plan.out_rows.empty()) result.hidden = loaded_.model->hidden(static_cast<int32_t>(plan.out_rows.size()));
  return result;
}

void StepLoop::pick_tokens(const sched::StepPlan& plan, const StepResult& result) {
  outcomes_.clear();
  picked_.clear();
  for (const sched::PlannedSlice& slice : plan.slices) {
    if (slice.n_out == 0 && slice.n_shown == 0) continue;
    ActiveRequest& request = requests_.of(slice.sequence->id);
    sched::Outcome outcome{slice.sequence->id, {}, false};
    contain(request, [&] {
      viewer_.show(request, slice, result);
      if (slice.n_out > 0) outcome = pick_token(request, slice, result);
    });
    if (slice.n_out > 0) outcomes_.push_back(outcome);
  }
}

sched::Outcome StepLoop::pick_token(ActiveRequest& request, const sched::PlannedSlice& slice,
                                    const StepResult& result) {
  if (request.beams) return pick_beam(request, slice, result);
  const bool is_first = request.n_choices() > 1 && !request.has_forked;
  return is_first ? pick_first(request, slice, result) : pick_next(request, slice, result);
}

// Of each row the token is chosen as if the row stood alone; a guess that equals it makes the next row's logits true.
sched::Outcome StepLoop::pick_next(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result) {
  const sched::Sequence& sequence = *slice.sequence;
  const int32_t choice = static_cast<int32_t>(sequence.id - request.id);
  const size_t n_before = picked_.size();
  bool is_finished = false;
  bool is_late = false;
  const auto pick = [&](int32_t i) {
    is_late = !can_pick(request, of_choice(request, choice, input_for(slice, i, result.logits)));
    if (is_late) return kNoToken;
    const Picked picked = pick_for(request, choice, slice, i, result);
    is_finished = picked.reason.has_value();
    picked_.push_back(picked.token);
    if (slice.n_draft > 0) text_.push_back(picked.token);
    return is_finished ? kNoToken : picked.token;
  };
  if (slice.n_draft > 0) text_.assign(sequence.tokens.begin(), sequence.tokens.end());
  const auto guesses = std::span(sequence.draft).first(static_cast<size_t>(slice.n_draft));
  const int32_t n_right = draft::verify(guesses, pick);
  const int32_t n_checked = is_late ? n_right : slice.n_draft;
  if (is_late && n_right == 0) keep(sequence.id, request.choice(choice).kept, input_for(slice, 0, result.logits));
  if (slice.n_draft > 0 || sequence.n_pending() == 1)
    request.choice(choice).draft_length.record(n_checked, n_right);
  request.summary.usage.drafted_tokens += n_checked;
  request.summary.usage.accepted_tokens += n_right;
  if (is_finished) count_usage(request, sequence, slice.n_rows);
  return {sequence.id, std::span(picked_).subspan(n_before), is_finished};
}

// The prompt of several choices was read: each draws from the same logits; the sequence holds until they fork.
sched::Outcome StepLoop::pick_first(ActiveRequest& request, const sched::PlannedSlice& slice,
                                    const StepResult& result) {
  for (int32_t i = 0; i < request.n_choices(); ++i) {
    request.choice(i).first_token = pick_for(request, i, slice, 0, result).token;
  }
  if (!request.choice(0).is_open) count_usage(request, *slice.sequence, slice.n_rows);
  to_fork_.push_back(&request);
  return {slice.sequence->id, {}, false};
}

// The token behind `n_right` guesses that came true.
Picked StepLoop::pick_for(ActiveRequest& request, int32_t choice, const sched::PlannedSlice& slice, int32_t n_right,
                          const StepResult& result) {
  TokenEvent& event = outbox_.add(request, choice);
  const bool is_first = choice == 0 && request.choice(0).n_made == 0;
  if (is_first) viewer_.finish(request, result.hidden.row(slice.out_row), event);
  if (request.fault && request.fault->kind == ErrorKind::kIo) {
    request.fault->message += broken_place(result);
  }
  if (request.fault || !request.rules.makes_text) return end_with_prompt(request, event);
  const Picked picked = pick_row(request, of_choice(request, choice, input_for(slice, n_right, result.logits)), event);
  if (event.error && event.error->kind == ErrorKind::kIo) event.error->message += broken_place(result);
  return picked;
}

PickInput StepLoop::of_choice(ActiveRequest& request, int32_t choice, PickInput input) {
  input.choice = choice;
  input.n_output = static_cast<size_t>(request.choice(choice).n_made);
  return input;
}

Picked StepLoop::pick_row(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  const Choice& choice = request.choice(input.choice);
  const Picked picked = picker_.pick(request, input, event);
  if (picked.gap_ns != kNever) metrics_.itl_ns.record(static_cast<uint64_t>(picked.gap_ns));
  if (picked.reason) end_choice(request, event, *picked.reason);
  if (choice.constraint != nullptr) accept_left_ns_ -= choice.constraint->accept_ns();
  if (!picked.reason) want_mask(choice.constraint, choice.output);
  return picked;
}

std::string StepLoop::broken_place(const StepResult& result) {
  return "; the first such number came out of " + loaded_.model->broken_place(result.plan->batch(), *loaded_.kv);
}

PickInput StepLoop::input_for(const sched::PlannedSlice& slice, int32_t n_right,
                              const backend::LogitsView& logits) const {
  const sched::Sequence& sequence = *slice.sequence;
  PickInput input = input_for(sequence, n_right);
  input.logits = logits.row(slice.out_row + n_right).first(static_cast<size_t>(loaded_.n_vocab()));
  if (n_right < slice.n_draft) input.guess = sequence.draft[static_cast<size_t>(n_right)];
  return input;
}

// Of the token behind n_right guesses, without its logits.
PickInput StepLoop::input_for(const sched::Sequence& sequence, int32_t n_right) const {
  const bool has_room = sequence.on_full == OnContextFull::kCrop || sequence.n_tokens() + n_right + 1 < loaded_.n_ctx();
  return {.position = sequence.next_position() + static_cast<uint64_t>(n_right),
          .has_room = has_room,
          .now_ns = token_time_ns_,
          .text = n_right > 0 ? std::span<const TokenId>(text_) : sequence.tokens};
}

// The prompt was all there was to compute, or it could not be shown.
Picked StepLoop::end_with_prompt(ActiveRequest& request, TokenEvent& event) {
  event.error = request.fault;
  const FinishReason reason = request.fault ? FinishReason::kError : FinishReason::kLength;
  end_choice(request, event, reason);
  return {.reason = reason};
}

void StepLoop::fork_choices() {
  for (ActiveRequest* request : to_fork_) contain(*request, [&] { fork_choices(*request); });
  to_fork_.clear();
}

// Choices that ended with their first token never get a sequence.
void StepLoop::fork_choices(ActiveRequest& request) {
  request.has_forked = true;
  for (int32_t i = 1; i < request.n_choices(); ++i) {
    if (!request.choice(i).is_open) continue;
    scheduler_.fork(request.id, request.sequence_of(i));
    scheduler_.append(request.sequence_of(i), request.choice(i).first_token);
  }
  if (request.choice(0).is_open) {
    scheduler_.append(request.id, request.choice(0).first_token);
  } else {
    scheduler_.remove(request.id);
  }
}

void StepLoop::end_choice(ActiveRequest& request, TokenEvent& event, FinishReason reason) {
  Choice& choice = request.choice(event.choice);
  if (reason != FinishReason::kStopString) event.text += choice.output.finish();
  event.finish = reason;
  choice.is_open = false;
  if (--request.n_open > 0) return;
  request.watch.on_end(clock_.now_ns());
  ++totals_.n_finished;
  ++n_finished_now_;
  event.summary.emplace();  // filled by publish(), when everything is counted
}

void StepLoop::count_usage(ActiveRequest& request, const sched::Sequence& sequence, int32_t n_rows) {
  Usage& usage = request.summary.usage;
  usage.cached_tokens += sequence.n_cached;
  usage.cropped_tokens = std::max(usage.cropped_tokens, sequence.n_cropped);
  usage.preemptions += sequence.n_preemptions;
  usage.token_layers += (sequence.n_rows + n_rows) * static_cast<int64_t>(loaded_.model->spec().blocks.size());
  totals_.cached_tokens += sequence.n_cached;
}

void StepLoop::count(const StepReport& report) {
  if (report.n_rows > 0) ++totals_.n_steps;
  totals_.n_rows += report.n_rows;
  totals_.n_sampled += report.n_sampled;
  totals_.n_preemptions += report.n_preempted;
  totals_.token_layers += report.n_rows * static_cast<int64_t>(loaded_.model->spec().blocks.size());
}

void StepLoop::store_stats() {
  const kv::BlockPool& pool = scheduler_.blocks().pool();
  totals_.n_waiting = scheduler_.n_waiting();
  totals_.n_running = scheduler_.n_running();
  totals_.kv_blocks_used = pool.n_used();
  totals_.kv_blocks_cached = pool.n_cached();
  const std::lock_guard lock(mutex_);
  stats_ = totals_;
}

EngineStats StepLoop::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void StepLoop::on_step(Engine::StepCallback callback) {
  auto shared = std::make_shared<const Engine::StepCallback>(std::move(callback));
  const std::lock_guard lock(mutex_);
  on_step_ = std::move(shared);
}

}  // namespace candor::engine
