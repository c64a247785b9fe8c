#include "engine/step_loop.h"

#include <algorithm>
#include <utility>

#include "engine/errors.h"
#include "platform/float_mode.h"

namespace candor::engine {
namespace {

sched::SchedulerOptions scheduler_options(const EngineOptions& options) {
  sched::SchedulerOptions result;
  result.n_ctx = static_cast<int32_t>(options.n_ctx);
  result.n_blocks = options.kv_blocks;
  result.max_running = options.max_running;
  result.max_queued = options.max_running + options.max_queued;  // the inbox counts those that run as well
  result.use_prefix_index = options.prefix_cache;
  result.use_kv_cache = options.use_kv_cache;
  return result;
}

sched::StepBudget step_budget(const EngineOptions& options) {
  return {.max_rows = options.max_rows,
          .max_prefill_rows = options.prefill_rows > 0 ? options.prefill_rows : options.max_rows};
}

double ms_between(int64_t begin_ns, int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-6;
}

TokenLogprob to_public(const sample::Logprob& logprob) {
  return {logprob.token, logprob.value};
}

}  // namespace

StepLoop::StepLoop(LoadedModel& loaded, Inbox& inbox, const obs::Clock& clock)
    : loaded_(loaded),
      inbox_(inbox),
      clock_(clock),
      budget_(step_budget(loaded.options)),
      scheduler_(scheduler_options(loaded.options)),
      mask_(loaded.n_vocab()) {
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
  const sched::StepPlan& plan = scheduler_.plan(budget_);
  const int64_t planned_ns = clock_.now_ns();
  report.n_rows = plan.batch().n_rows();
  report.n_prefill_rows = plan.n_prefill_rows;
  report.n_sequences = static_cast<int32_t>(plan.slices.size());
  report.n_preempted = plan.n_preempted;
  if (!plan.is_empty()) {
    const backend::LogitsView logits = compute(plan);
    token_time_ns_ = clock_.now_ns();
    pick_tokens(plan, logits);
    scheduler_.commit(outcomes_);
    report.n_sampled = static_cast<int32_t>(outcomes_.size());
    report.plan_ms = ms_between(step_began_ns_, planned_ns);
    report.compute_ms = ms_between(planned_ns, token_time_ns_);
    report.pick_ms = ms_between(token_time_ns_, clock_.now_ns());
  }
  report.n_finished = std::exchange(n_finished_now_, 0);
  record(report);
  publish();
}

void StepLoop::take_in(InboxBatch& batch) {
  for (auto& request : batch.submitted) start(std::move(request));
  for (const SequenceId id : batch.cancelled) cancel(id);
}

void StepLoop::start(std::unique_ptr<ActiveRequest> request) {
  ++totals_.n_submitted;
  const SequenceId id = request->spec.id;
  ActiveRequest& active = *(requests_[id] = std::move(request));
  if (auto added = scheduler_.add(active.spec); !added) {
    TokenEvent event{.request = id};
    event.error = engine::to_public(std::move(added).error());
    finish(active, event, FinishReason::kError);
    outbox_.push_back({&active, std::move(event)});
  }
}

void StepLoop::cancel(SequenceId id) {
  const auto it = requests_.find(id);
  const sched::Sequence* sequence = scheduler_.find(id);
  if (it == requests_.end() || sequence == nullptr) return;  // it ended by itself in the meantime
  count_usage(*it->second, *sequence, 0);
  scheduler_.remove(id);
  TokenEvent event{.request = id};
  finish(*it->second, event, FinishReason::kCancelled);
  outbox_.push_back({it->second.get(), std::move(event)});
}

void StepLoop::cancel_all() {
  std::vector<SequenceId> ids;
  for (const auto& [id, request] : requests_) ids.push_back(id);
  for (const SequenceId id : ids) cancel(id);
  publish();
}

backend::LogitsView StepLoop::compute(const sched::StepPlan& plan) {
  for (const sched::PlannedSlice& slice : plan.slices) requests_.at(slice.sequence->id)->watch.on_rows(step_began_ns_);
  for (const kv::BlockCopy& copy : plan.copies) loaded_.kv->copy_block(copy.src, copy.dst, copy.n_tokens);
  return loaded_.backend->wait(loaded_.model->launch(plan.batch(), *loaded_.kv));
}

void StepLoop::pick_tokens(const sched::StepPlan& plan, const backend::LogitsView& logits) {
  outcomes_.clear();
  picked_.clear();
  picked_.reserve(plan.out_rows.size());  // the outcomes look into it
  for (const sched::PlannedSlice& slice : plan.slices) {
    if (slice.n_out == 0) continue;
    const auto row = logits.row(slice.out_row).first(static_cast<size_t>(loaded_.n_vocab()));
    outcomes_.push_back(pick_one(slice, row));
  }
}

sched::Outcome StepLoop::pick_one(const sched::PlannedSlice& slice, std::span<const float> logits) {
  const sched::Sequence& sequence = *slice.sequence;
  ActiveRequest& request = *requests_.at(sequence.id);
  TokenEvent event{.request = sequence.id};
  std::optional<FinishReason> reason;
  if (auto chosen = choose(request, sequence, logits); chosen) {
    reason = add_token(request, sequence, event);
  } else {
    event.error = engine::to_public(std::move(chosen).error());
    reason = FinishReason::kError;
  }
  if (reason) {
    count_usage(request, sequence, slice.n_rows);
    finish(request, event, *reason);
  }
  outbox_.push_back({&request, std::move(event)});
  picked_.push_back(pick_.token);
  return {sequence.id, std::span(picked_).last(1), reason.has_value()};
}

Expected<void> StepLoop::choose(ActiveRequest& request, const sched::Sequence& sequence,
                                std::span<const float> logits) {
  const ChoiceRules& rules = request.rules;
  sample::PickRequest pick{.logits = logits, .chain = rules.chain, .n_logprobs = rules.n_logprobs};
  pick.key = {.seed = rules.seed, .choice = 0, .position = sequence.next_position()};
  if (request.constraint != nullptr) {
    CANDOR_TRY(request.constraint->mask(mask_));
    pick.mask = &mask_;
  }
  CANDOR_TRY(sampler_.pick(pick, pick_));
  if (request.constraint != nullptr) return request.constraint->accept(pick_.token);
  return {};
}

std::optional<FinishReason> StepLoop::add_token(ActiveRequest& request, const sched::Sequence& sequence,
                                                TokenEvent& event) {
  event.token = pick_.token;
  if (request.rules.n_logprobs >= 0) {
    event.logprob = TokenLogprob{pick_.token, pick_.logprob};
    for (const sample::Logprob& logprob : pick_.top) event.top_logprobs.push_back(to_public(logprob));
  }
  const int64_t n_made = ++request.summary.usage.completion_tokens;
  const auto ended = end_by_token(request, event);
  if (!ended) {
    text::StopResult shown = request.output.push(pick_.token);
    event.text = std::move(shown.text);
    event.stop_index = shown.hit;
  }
  request.watch.on_token(token_time_ns_, !event.text.empty());
  if (ended) return ended;
  if (event.stop_index) return FinishReason::kStopString;
  if (request.constraint != nullptr && request.constraint->must_end()) return FinishReason::kStopEos;
  if (n_made == request.rules.max_tokens) return FinishReason::kLength;
  const bool has_room = sequence.on_full == sched::OnFull::kCrop || sequence.n_tokens() + 1 < loaded_.n_ctx();
  return has_room ? std::nullopt : std::optional(FinishReason::kContextFull);
}

std::optional<FinishReason> StepLoop::end_by_token(const ActiveRequest& request, TokenEvent& event) const {
  const auto& stop_ids = request.rules.stop_ids;
  if (const auto it = std::ranges::find(stop_ids, event.token); it != stop_ids.end()) {
    event.stop_index = static_cast<size_t>(it - stop_ids.begin());
    return FinishReason::kStopId;
  }
  const bool is_end = std::ranges::binary_search(loaded_.tokenizer->end_tokens(), event.token);
  return is_end && !request.rules.ignore_eos ? std::optional(FinishReason::kStopEos) : std::nullopt;
}

void StepLoop::finish(ActiveRequest& request, TokenEvent& event, FinishReason reason) {
  if (reason != FinishReason::kStopString) event.text += request.output.finish();
  event.finish = reason;
  request.watch.on_end(clock_.now_ns());
  const Usage& usage = request.summary.usage;
  request.summary.timings = request.watch.timings(usage.prompt_tokens - usage.cached_tokens);
  event.summary = std::move(request.summary);
  ++totals_.n_finished;
  ++n_finished_now_;
}

void StepLoop::count_usage(ActiveRequest& request, const sched::Sequence& sequence, int32_t n_rows) {
  Usage& usage = request.summary.usage;
  usage.cached_tokens = sequence.n_cached;
  usage.cropped_tokens = sequence.n_cropped;
  usage.preemptions = sequence.n_preemptions;
  usage.token_layers = (sequence.n_rows + n_rows) * static_cast<int64_t>(loaded_.model->spec().blocks.size());
  totals_.cached_tokens += sequence.n_cached;
}

// A finished request is forgotten before its last event, so that its callback may submit the next one.
void StepLoop::publish() {
  for (const Outgoing& outgoing : outbox_) {
    const TokenEvent& event = outgoing.event;
    if (!event.finish) {
      outgoing.request->callback(event);
      continue;
    }
    const auto request = std::move(requests_.at(event.request));
    requests_.erase(event.request);
    inbox_.forget(event.request);
    request->callback(event);
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
