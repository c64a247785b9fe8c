#include "engine/step_loop.h"

#include <algorithm>
#include <utility>

#include "draft/verify.h"
#include "engine/errors.h"
#include "engine/memory_plan.h"
#include "engine/step_costs.h"
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
      scheduler_(scheduler_options(loaded)),
      speculator_(loaded, scheduler_options(loaded).costs),
      picker_(*loaded.tokenizer) {
  picked_.reserve(static_cast<size_t>(budget_.max_out_rows));
  outcomes_.reserve(static_cast<size_t>(budget_.max_out_rows));
  stats_.kv_blocks_total = totals_.kv_blocks_total = loaded.options.kv_blocks;
}

void StepLoop::run() {
  const platform::ScopedFloatMode float_mode;
  InboxBatch batch;
  bool is_open = true;
  while (is_open) {
    is_open = inbox_.wait(batch, !scheduler_.is_idle());
    take_in(batch);
    if (is_open) step();
  }
  cancel_all();
}

void StepLoop::step() {
  StepReport report;
  step_began_ns_ = clock_.now_ns();
  expire();
  speculator_.propose(scheduler_, requests_);
  const sched::StepPlan& plan = scheduler_.plan(budget_);
  const int64_t planned_ns = clock_.now_ns();
  report.n_rows = plan.batch().n_rows();
  report.n_prefill_rows = plan.n_prefill_rows;
  report.n_draft_rows = plan.n_draft_rows;
  report.n_sequences = static_cast<int32_t>(plan.slices.size());
  report.n_preempted = plan.n_preempted;
  report.expected_ms = static_cast<double>(plan.expected_ns) * 1e-6;
  if (!plan.is_empty()) {
    const StepResult result = compute(plan);
    token_time_ns_ = clock_.now_ns();
    pick_tokens(plan, result);
    report.n_sampled = static_cast<int32_t>(plan.out_rows.size()) - plan.n_shown_rows;
    scheduler_.commit(outcomes_);
    fork_choices();
    advance_beams();
    const int64_t end_ns = clock_.now_ns();
    report.plan_ms = ms_between(step_began_ns_, planned_ns);
    report.compute_ms = ms_between(planned_ns, token_time_ns_);
    report.pick_ms = ms_between(token_time_ns_, end_ns);
    metrics_.step_ns.record(static_cast<uint64_t>(end_ns - step_began_ns_));
    metrics_.step_rows.record(static_cast<uint64_t>(report.n_rows));
  }
  report.n_finished = std::exchange(n_finished_now_, 0);
  record(report);
  publish();
}

void StepLoop::take_in(InboxBatch& batch) {
  for (auto& request : batch.submitted) start(std::move(request));
  for (const RequestId id : batch.cancelled) cancel(id);
}

void StepLoop::start(std::unique_ptr<ActiveRequest> request) {
  ++totals_.n_submitted;
  ActiveRequest& active = requests_.add(std::move(request));
  if (active.beams) begin_beams(active);
  if (auto added = scheduler_.add(active.spec); !added) {
    for (int32_t i = 0; i < active.n_choices(); ++i) {
      TokenEvent& event = outbox_.add(active, i);
      event.error = engine::to_public(added.error());
      end_choice(active, event, FinishReason::kError);
    }
  }
}

void StepLoop::cancel(RequestId id) {
  ActiveRequest* request = requests_.find(id);
  if (request != nullptr) end_all(*request, FinishReason::kCancelled);  // else it ended by itself in the meantime
}

void StepLoop::cancel_all() {
  for (const auto& request : requests_) end_all(*request, FinishReason::kCancelled);
  publish();
}

void StepLoop::expire() {
  for (const auto& request : requests_) {
    if (request->deadline_ns == kNever || step_began_ns_ < request->deadline_ns) continue;
    end_all(*request, FinishReason::kDeadline);
  }
}

void StepLoop::end_all(ActiveRequest& request, FinishReason reason) {
  for (int32_t i = 0; i < request.n_sequences(); ++i) {
    if (const sched::Sequence* sequence = scheduler_.find(request.sequence_of(i))) {
      count_usage(request, *sequence, 0);
      scheduler_.remove(sequence->id);
    }
  }
  for (int32_t i = 0; i < request.n_choices(); ++i) {
    if (request.choice(i).is_open) end_choice(request, outbox_.add(request, i), reason);
  }
}

StepResult StepLoop::compute(const sched::StepPlan& plan) {
  for (const sched::PlannedSlice& slice : plan.slices) requests_.of(slice.sequence->id).watch.on_rows(step_began_ns_);
  for (const kv::BlockCopy& copy : plan.copies) loaded_.kv->copy_block(copy.src, copy.dst, copy.n_tokens);
  StepResult result{.logits = loaded_.backend->wait(loaded_.model->launch(plan.batch(), *loaded_.kv))};
  if (!plan.out_rows.empty()) result.hidden = loaded_.model->hidden(static_cast<int32_t>(plan.out_rows.size()));
  return result;
}

void StepLoop::pick_tokens(const sched::StepPlan& plan, const StepResult& result) {
  outcomes_.clear();
  picked_.clear();
  for (const sched::PlannedSlice& slice : plan.slices) {
    if (slice.n_out == 0 && slice.n_shown == 0) continue;
    ActiveRequest& request = requests_.of(slice.sequence->id);
    viewer_.show(request, slice, result);
    if (slice.n_out == 0) continue;
    if (request.beams) {
      outcomes_.push_back(pick_beam(request, slice, result.logits));
      continue;
    }
    const bool is_first = request.n_choices() > 1 && !request.has_forked;
    outcomes_.push_back(is_first ? pick_first(request, slice, result) : pick_next(request, slice, result));
  }
}

// Of each row the token is chosen as if the row stood alone; a guess that equals it makes the next row's logits true.
sched::Outcome StepLoop::pick_next(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result) {
  const sched::Sequence& sequence = *slice.sequence;
  const int32_t choice = static_cast<int32_t>(sequence.id - request.id);
  const size_t n_before = picked_.size();
  bool is_finished = false;
  const auto pick = [&](int32_t i) {
    const Picked picked = pick_for(request, choice, slice, i, result);
    is_finished = picked.reason.has_value();
    picked_.push_back(picked.token);
    if (slice.n_draft > 0) text_.push_back(picked.token);
    return is_finished ? kNoToken : picked.token;
  };
  if (slice.n_draft > 0) text_.assign(sequence.tokens.begin(), sequence.tokens.end());
  const auto guesses = std::span(sequence.draft).first(static_cast<size_t>(slice.n_draft));
  const int32_t n_right = draft::verify(guesses, pick);
  if (slice.n_draft > 0 || sequence.n_pending() == 1)
    request.choice(choice).draft_length.record(slice.n_draft, n_right);
  request.summary.usage.drafted_tokens += slice.n_draft;
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
  if (request.fault || !request.rules.makes_text) return end_with_prompt(request, event);
  PickInput input = input_for(slice, n_right, result.logits);
  input.choice = choice;
  input.n_output = static_cast<size_t>(request.choice(choice).n_made);
  const Picked picked = picker_.pick(request, input, event);
  if (picked.gap_ns != kNever) metrics_.itl_ns.record(static_cast<uint64_t>(picked.gap_ns));
  if (picked.reason) end_choice(request, event, *picked.reason);
  return picked;
}

PickInput StepLoop::input_for(const sched::PlannedSlice& slice, int32_t n_right,
                              const backend::LogitsView& logits) const {
  const sched::Sequence& sequence = *slice.sequence;
  const bool has_room = sequence.on_full == sched::OnFull::kCrop || sequence.n_tokens() + n_right + 1 < loaded_.n_ctx();
  return {.logits = logits.row(slice.out_row + n_right).first(static_cast<size_t>(loaded_.n_vocab())),
          .position = sequence.next_position() + static_cast<uint64_t>(n_right),
          .has_room = has_room,
          .now_ns = token_time_ns_,
          .guess = n_right < slice.n_draft ? sequence.draft[static_cast<size_t>(n_right)] : kNoToken,
          .text = n_right > 0 ? std::span<const TokenId>(text_) : sequence.tokens};
}

// The prompt was all there was to compute, or it could not be shown.
Picked StepLoop::end_with_prompt(ActiveRequest& request, TokenEvent& event) {
  event.error = request.fault;
  const FinishReason reason = request.fault ? FinishReason::kError : FinishReason::kLength;
  end_choice(request, event, reason);
  return {.reason = reason};
}

// Choices that ended with their first token never get a sequence.
void StepLoop::fork_choices() {
  for (ActiveRequest* request : to_fork_) {
    request->has_forked = true;
    for (int32_t i = 1; i < request->n_choices(); ++i) {
      if (!request->choice(i).is_open) continue;
      scheduler_.fork(request->id, request->sequence_of(i));
      scheduler_.append(request->sequence_of(i), request->choice(i).first_token);
    }
    if (request->choice(0).is_open) {
      scheduler_.append(request->id, request->choice(0).first_token);
    } else {
      scheduler_.remove(request->id);
    }
  }
  to_fork_.clear();
}

void StepLoop::end_choice(ActiveRequest& request, TokenEvent& event, FinishReason reason) {
  Choice& choice = request.choice(event.choice);
  if (reason != FinishReason::kStopString) event.text += choice.output.finish();
  event.finish = reason;
  choice.is_open = false;
  metrics_.n_finished[static_cast<size_t>(reason)].add();
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

// A finished request is forgotten before its last event, so that its callback may submit the next one.
void StepLoop::publish() {
  for (Outgoing& outgoing : outbox_.events()) {
    if (!outgoing.event.summary) {
      outgoing.request->callback(outgoing.event);
      continue;
    }
    const RequestTable::Owned request = requests_.take(*outgoing.request);
    const Usage& usage = request->summary.usage;
    request->summary.timings = request->watch.timings(usage.prompt_tokens - usage.cached_tokens);
    metrics_.record(request->summary);
    outgoing.event.summary = std::move(request->summary);
    inbox_.forget(*request);
    request->callback(outgoing.event);
  }
  outbox_.clear();
}

void StepLoop::record(const StepReport& report) {
  const kv::BlockPool& pool = scheduler_.blocks().pool();
  if (report.n_rows > 0) ++totals_.n_steps;
  totals_.n_rows += report.n_rows;
  totals_.n_sampled += report.n_sampled;
  totals_.n_preemptions += report.n_preempted;
  totals_.token_layers += report.n_rows * static_cast<int64_t>(loaded_.model->spec().blocks.size());
  totals_.n_waiting = scheduler_.n_waiting();
  totals_.n_running = scheduler_.n_running();
  totals_.kv_blocks_used = pool.n_used();
  totals_.kv_blocks_cached = pool.n_cached();
  StepReport numbered = report;
  numbered.step = totals_.n_steps;
  std::shared_ptr<const Engine::StepCallback> on_step;
  {
    const std::lock_guard lock(mutex_);
    stats_ = totals_;
    on_step = on_step_;
  }
  if (on_step && *on_step && report.n_rows > 0) (*on_step)(numbered);
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
