#include "engine/step/engine_metrics.h"

#include <algorithm>
#include <cstdint>

namespace candor::engine {
namespace {

constexpr double kMsPerNs = 1e-6;

uint64_t to_ns(double ms) {
  return static_cast<uint64_t>(std::max(0.0, ms) / kMsPerNs);
}

Distribution distribution(const obs::Histogram& histogram, double unit) {
  const obs::Histogram::Summary summary = histogram.summary();
  const auto scaled = [unit](uint64_t value) { return static_cast<double>(value) * unit; };
  Distribution result{.count = summary.count, .sum = scaled(summary.sum), .max = scaled(summary.max)};
  result.p50 = scaled(histogram.quantile(0.5));
  result.p90 = scaled(histogram.quantile(0.9));
  result.p99 = scaled(histogram.quantile(0.99));
  for (size_t i = 0; i < obs::Histogram::kBuckets; ++i) {
    if (const uint64_t n = histogram.bucket_count(i); n > 0) {
      result.buckets.push_back({scaled(obs::Histogram::bucket_upper(i)), n});
    }
  }
  return result;
}

void add_draft_usage(const DraftUsage& usage, MetricStore::Drafts& drafts) {
  drafts.n_steps.add(static_cast<uint64_t>(usage.n_steps));
  drafts.n_drafted.add(static_cast<uint64_t>(usage.drafted_tokens));
  drafts.n_accepted.add(static_cast<uint64_t>(usage.accepted_tokens));
  drafts.plain_ns.add(to_ns(usage.plain_ms));
  drafts.added_ns.add(to_ns(usage.added_ms));
  drafts.saved_ns.add(to_ns(usage.saved_ms));
}

DraftUsage draft_usage(const MetricStore::Drafts& drafts) {
  const auto count = [](const obs::Counter& counter) { return static_cast<int64_t>(counter.value()); };
  const auto ms = [](const obs::Counter& counter) { return static_cast<double>(counter.value()) * kMsPerNs; };
  return {.n_steps = count(drafts.n_steps),
          .drafted_tokens = count(drafts.n_drafted),
          .accepted_tokens = count(drafts.n_accepted),
          .plain_ms = ms(drafts.plain_ns),
          .added_ms = ms(drafts.added_ns),
          .saved_ms = ms(drafts.saved_ns)};
}

}  // namespace

void MetricStore::record(const RequestSummary& summary) {
  queue_ns.record(to_ns(summary.timings.queue_ms));
  e2e_ns.record(to_ns(summary.timings.e2e_ms));
  if (summary.timings.itl_mean_ms > 0) tpot_ns.record(to_ns(summary.timings.itl_mean_ms));
  if (summary.usage.completion_tokens > 0) ttft_ns.record(to_ns(summary.timings.ttft_ms));
  prompt_tokens.record(static_cast<uint64_t>(summary.usage.prompt_tokens));
  for (size_t i = 0; i < kDraftSources; ++i) add_draft_usage(summary.usage.drafts[i], drafts[i]);
  completion_tokens.record(static_cast<uint64_t>(summary.usage.completion_tokens));
}

EngineMetrics MetricStore::snapshot() const {
  EngineMetrics metrics;
  metrics.queue_ms = distribution(queue_ns, kMsPerNs);
  metrics.ttft_ms = distribution(ttft_ns, kMsPerNs);
  metrics.e2e_ms = distribution(e2e_ns, kMsPerNs);
  metrics.itl_ms = distribution(itl_ns, kMsPerNs);
  metrics.tpot_ms = distribution(tpot_ns, kMsPerNs);
  metrics.step_ms = distribution(step_ns, kMsPerNs);
  metrics.prompt_tokens = distribution(prompt_tokens, 1.0);
  metrics.completion_tokens = distribution(completion_tokens, 1.0);
  metrics.step_rows = distribution(step_rows, 1.0);
  for (size_t i = 0; i < kFinishReasons; ++i) metrics.n_finished[i] = n_finished[i].value();
  metrics.n_refused = n_refused.value();
  metrics.n_overloaded = n_overloaded.value();
  metrics.n_faults = n_faults.value();
  for (size_t i = 0; i < kDraftSources; ++i) metrics.drafts[i] = draft_usage(drafts[i]);
  return metrics;
}

}  // namespace candor::engine
