#include "engine/step/step_stats.h"

#include <algorithm>
#include <utility>

namespace candor::engine {
namespace {

double ms_between(int64_t begin_ns, int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-6;
}

}  // namespace

StepReport report_of(const sched::StepPlan& plan) {
  StepReport report;
  report.n_rows = plan.batch().n_rows();
  report.n_prefill_rows = plan.n_prefill_rows;
  report.n_draft_rows = plan.n_draft_rows;
  report.n_sequences = static_cast<int32_t>(plan.slices.size());
  report.n_sampled = static_cast<int32_t>(plan.out_rows.size()) - plan.n_shown_rows;
  report.n_preempted = plan.n_preempted;
  report.expected_ms = static_cast<double>(plan.expected_ns) * 1e-6;
  return report;
}

StepStats::StepStats(const sched::Scheduler& scheduler, MetricStore& metrics, int64_t n_layers)
    : scheduler_(scheduler), metrics_(metrics), n_layers_(n_layers) {
  stats_.kv_blocks_total = totals_.kv_blocks_total = scheduler.blocks().pool().n_blocks();
  stats_.state_slots_total = totals_.state_slots_total = scheduler.blocks().states().n_slots();
}

void StepStats::count_finished() noexcept {
  ++totals_.n_finished;
  ++n_finished_now_;
}

void StepStats::count_times(StepReport& report, const StepTimes& times) {
  report.plan_ms = ms_between(times.began_ns, times.planned_ns);
  report.compute_ms = ms_between(times.planned_ns, times.computed_ns);
  report.pick_ms = ms_between(times.computed_ns, times.ended_ns);
  metrics_.step_ns.record(static_cast<uint64_t>(times.ended_ns - times.began_ns));
  metrics_.step_rows.record(static_cast<uint64_t>(report.n_rows));
}

void StepStats::count_left(Usage& usage, const sched::Sequence& sequence, int32_t n_rows) {
  usage.cached_tokens += sequence.n_cached;
  usage.cropped_tokens = std::max(usage.cropped_tokens, sequence.n_cropped);
  usage.preemptions += sequence.n_preemptions;
  usage.token_layers += (sequence.n_rows + n_rows) * n_layers_;
  totals_.cached_tokens += sequence.n_cached;
}

void StepStats::finish(StepReport done) noexcept {
  done.n_finished = std::exchange(n_finished_now_, 0);
  if (done.n_rows > 0) ++totals_.n_steps;
  totals_.n_rows += done.n_rows;
  totals_.n_sampled += done.n_sampled;
  totals_.n_preemptions += done.n_preempted;
  totals_.token_layers += done.n_rows * n_layers_;
  done.step = totals_.n_steps;
  store();
  report(done);
}

void StepStats::store() noexcept {
  const kv::BlockPool& pool = scheduler_.blocks().pool();
  totals_.n_waiting = scheduler_.n_waiting();
  totals_.n_running = scheduler_.n_running();
  totals_.kv_blocks_used = pool.n_used();
  totals_.kv_blocks_cached = pool.n_cached();
  totals_.state_slots_used = scheduler_.blocks().states().n_used();
  totals_.checkpoints = scheduler_.blocks().states().n_checkpoints();
  const std::lock_guard lock(mutex_);
  stats_ = totals_;
}

void StepStats::report(const StepReport& report) noexcept {
  std::shared_ptr<const StepCallback> on_step;
  {
    const std::lock_guard lock(mutex_);
    on_step = on_step_;
  }
  if (!on_step || !*on_step || report.n_rows == 0) return;
  try {
    (*on_step)(report);
  } catch (...) {
    metrics_.n_faults.add();
  }
}

EngineStats StepStats::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void StepStats::on_step(StepCallback callback) {
  auto shared = std::make_shared<const StepCallback>(std::move(callback));
  const std::lock_guard lock(mutex_);
  on_step_ = std::move(shared);
}

}  // namespace candor::engine
