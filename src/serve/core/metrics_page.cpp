#include "serve/core/metrics_page.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "candor/drafts.h"
#include "candor/info.h"
#include "candor/metrics.h"

namespace candor::serve {
namespace {

// The engine's fine buckets, summed up to these bounds.
void add_histogram(MetricsText& families, const char* name, const char* help, const Distribution& seen, double unit,
                   std::span<const double> bounds) {
  std::vector<MetricBucket> buckets;
  for (const double bound : bounds) {
    uint64_t n_below = 0;
    for (const Distribution::Bucket& bucket : seen.buckets) n_below += bucket.upper * unit <= bound ? bucket.count : 0;
    buckets.push_back({bound, n_below});
  }
  families.histogram(name, help, buckets, seen.count, seen.sum * unit);
}

void add_engine(const EngineStats& stats, MetricsText& families) {
  const auto n = [](auto value) { return static_cast<double>(value); };
  families.counter("candor_requests_total", "Requests that entered the engine", n(stats.n_submitted));
  families.counter("candor_requests_finished_total", "Requests that ended, for whatever reason", n(stats.n_finished));
  families.counter("candor_sampled_tokens_total", "Tokens drawn", n(stats.n_sampled));
  families.counter("candor_computed_tokens_total", "Tokens computed, of prompts and outputs", n(stats.n_rows));
  families.counter("candor_cached_tokens_total", "Prompt tokens found in the prefix cache", n(stats.cached_tokens));
  families.counter("candor_steps_total", "Passes of the step loop that computed something", n(stats.n_steps));
  families.counter("candor_preemptions_total", "Times that a request's K/V blocks were taken", n(stats.n_preemptions));
  families.gauge("candor_requests_waiting", "Requests that wait for their first step", n(stats.n_waiting));
  families.gauge("candor_requests_running", "Requests being computed", n(stats.n_running));
  families.gauge("candor_kv_blocks_used", "K/V blocks held by requests", n(stats.kv_blocks_used));
  families.gauge("candor_kv_blocks_cached", "K/V blocks held by the prefix cache alone", n(stats.kv_blocks_cached));
  families.gauge("candor_kv_blocks_total", "K/V blocks in all", n(stats.kv_blocks_total));
  families.gauge("candor_state_slots_used", "Recurrent states held by requests", n(stats.state_slots_used));
  families.gauge("candor_state_slots_total", "Slots of recurrent states in all", n(stats.state_slots_total));
  families.gauge("candor_checkpoints", "Recurrent states kept for prefixes", n(stats.checkpoints));
}

void add_disk_cache(const DiskCacheStats& stats, MetricsText& families) {
  if (!stats.is_on) return;
  const auto n = [](auto value) { return static_cast<double>(value); };
  families.counter("candor_disk_cache_tokens_total", "Prompt tokens that came from the disk", n(stats.tokens_restored));
  families.counter("candor_disk_cache_read_bytes_total", "Read from the prefix cache on disk", n(stats.read_bytes));
  families.counter("candor_disk_cache_read_seconds_total", "Time that these reads took", stats.read_ms / 1e3);
  families.counter("candor_disk_cache_saved_seconds_total", "Time that computing these tokens would have taken",
                   stats.saved_ms / 1e3);
  families.counter("candor_disk_cache_written_bytes_total", "Written to it", n(stats.written_bytes));
  families.counter("candor_disk_cache_damaged_blocks_total", "Blocks whose checksum did not fit: computed again",
                   n(stats.blocks_damaged));
  families.counter("candor_disk_cache_unwritten_blocks_total",
                   "Blocks that were not written: no room, another process writes, the disk is full",
                   n(stats.blocks_unwritten));
  families.gauge("candor_disk_cache_bytes", "Of the folder", n(stats.folder_bytes));
  families.gauge("candor_disk_cache_blocks", "In the folder", n(stats.folder_blocks));
}

// Of a model that takes them.
void add_images(const ImageStats& stats, const ModelInfo& info, MetricsText& families) {
  if (info.images.empty()) return;
  const auto n = [](auto value) { return static_cast<double>(value); };
  families.counter("candor_images_encoded_total", "Images that went through the vision tower", n(stats.n_encoded));
  families.counter("candor_images_reused_total", "Images of requests that had been encoded before", n(stats.n_reused));
  families.counter("candor_image_encode_seconds_total", "Time that encoding took", stats.encode_ms / 1e3);
  families.gauge("candor_image_cache_bytes", "Encoded images that are kept", n(stats.cached_bytes));
  families.gauge("candor_vision_tower_bytes", "Memory of the vision tower; 0 before the first image",
                 n(stats.tower_bytes));
}

void add_distributions(const EngineMetrics& metrics, MetricsText& families) {
  constexpr double kMs = 1e-3;
  static constexpr double kSeconds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60};
  static constexpr double kCounts[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536};
  add_histogram(families, "candor_queue_seconds", "From arrival to the first computed row", metrics.queue_ms, kMs,
                kSeconds);
  add_histogram(families, "candor_ttft_seconds", "From arrival to the first text", metrics.ttft_ms, kMs, kSeconds);
  add_histogram(families, "candor_itl_seconds", "Between a choice's tokens", metrics.itl_ms, kMs, kSeconds);
  add_histogram(families, "candor_tpot_seconds", "Of a request, the mean between its tokens", metrics.tpot_ms, kMs,
                kSeconds);
  add_histogram(families, "candor_e2e_seconds", "From arrival to the end", metrics.e2e_ms, kMs, kSeconds);
  add_histogram(families, "candor_step_seconds", "One pass of the step loop", metrics.step_ms, kMs, kSeconds);
  add_histogram(families, "candor_step_rows", "Tokens computed in one step", metrics.step_rows, 1, kCounts);
  add_histogram(families, "candor_prompt_tokens", "Of a request's prompt", metrics.prompt_tokens, 1, kCounts);
  add_histogram(families, "candor_completion_tokens", "Drawn for a request", metrics.completion_tokens, 1, kCounts);
}

}  // namespace

void add_drafts(const DraftUsages& drafts, const ModelInfo& info, MetricsText& families) {
  for (size_t i = 0; i < kDraftSources; ++i) {
    const auto source = static_cast<DraftSource>(i);
    const DraftUsage& usage = drafts[i];
    const bool is_here = std::ranges::find(info.drafters, source) != info.drafters.end();
    if (!is_here && usage.n_steps == 0) continue;
    const MetricLabels labels = {{"drafter", to_string(source)}};
    const auto count = [&](const char* name, const char* help, double value) {
      families.counter(name, help, value, labels);
    };
    count("candor_draft_steps_total", "Steps that drafted, counted for each sequence, of requests that ended",
          static_cast<double>(usage.n_steps));
    count("candor_drafted_tokens_total", "Tokens that were drafted in them", static_cast<double>(usage.drafted_tokens));
    count("candor_accepted_tokens_total", "Of them, those that the model said too",
          static_cast<double>(usage.accepted_tokens));
    count("candor_draft_plain_seconds_total", "What these steps would have taken without drafts, by the costs measured",
          usage.plain_ms * 1e-3);
    count("candor_draft_added_seconds_total", "What the drafts added to them: to make and to verify",
          usage.added_ms * 1e-3);
    count("candor_draft_saved_seconds_total", "What the steps would have taken that accepted drafts saved",
          usage.saved_ms * 1e-3);
    if (!is_here) continue;
    families.gauge("candor_draft_seconds", "What one draft costs, measured when the model was loaded",
                   source == DraftSource::kNgram ? 0.0 : info.costs.draft_ms * 1e-3, labels);
  }
}

void add_device(const DeviceStats& stats, MetricsText& families) {
  if (stats.name.empty()) return;
  const auto n = [](auto value) { return static_cast<double>(value); };
  const auto labelled = [&](const char* name, const char* value) {
    return MetricLabels{{"device", stats.name}, {name, value}};
  };
  const MetricLabels device = {{"device", stats.name}};
  families.gauge("candor_device_memory_bytes", "Memory of the device", n(stats.memory_bytes), device);
  families.gauge("candor_device_memory_free_bytes", "Of it, left by all processes", n(stats.free_bytes), device);
  constexpr const char* kUsed = "Of it, taken by this model, by use";
  families.gauge("candor_device_memory_used_bytes", kUsed, n(stats.weight_bytes), labelled("use", "weights"));
  families.gauge("candor_device_memory_used_bytes", kUsed, n(stats.kv_bytes), labelled("use", "kv"));
  families.gauge("candor_device_memory_used_bytes", kUsed, n(stats.work_bytes), labelled("use", "work"));
  constexpr const char* kCopied = "Copied to the device (in) and from it (out)";
  families.counter("candor_device_copied_bytes_total", kCopied, n(stats.copied_in_bytes), labelled("direction", "in"));
  families.counter("candor_device_copied_bytes_total", kCopied, n(stats.copied_out_bytes),
                   labelled("direction", "out"));
  constexpr const char* kLaunched = "Calls that run kernels: of one, and of a step's as a graph";
  families.counter("candor_device_launches_total", kLaunched, n(stats.launches), labelled("of", "kernel"));
  families.counter("candor_device_launches_total", kLaunched, n(stats.graph_launches), labelled("of", "graph"));
}

void MetricsPage::count_reply(int status) {
  const std::lock_guard lock(mutex_);
  ++replies_[status];
}

std::string MetricsPage::text(std::span<const ModelFigures> models, bool is_named, const ServerFigures& server) const {
  MetricsText families;
  int64_t n_engine_faults = 0;
  for (const ModelFigures& model : models) {
    const EngineMetrics seen = model.engine.metrics();
    n_engine_faults += static_cast<int64_t>(seen.n_faults);
    if (is_named) families.use_labels({{"model", model.name}});
    add_engine(model.engine.stats(), families);
    add_drafts(seen.drafts, model.engine.info(), families);
    add_disk_cache(model.engine.disk_cache(), families);
    add_images(model.engine.image_stats(), model.engine.info(), families);
    add_device(model.engine.device(), families);
    add_distributions(seen, families);
    if (model.read_limit <= 0 || seen.step_ms.sum <= 0) continue;
    const double bytes =
        static_cast<double>(model.engine.info().used_weight_bytes) * static_cast<double>(seen.step_ms.count);
    families.gauge(
        "candor_limit_share",
        "Weights that a token of each step reads, a second of them, as a share of what this machine's memory gives",
        bytes / (seen.step_ms.sum * 1e-3) / model.read_limit);
  }
  families.use_labels({});
  if (is_named) families.gauge("candor_models_loaded", "Models that are loaded", static_cast<double>(models.size()));
  for (size_t i = 0; i < http::kFaultPlaces; ++i) {
    const auto place = static_cast<http::FaultPlace>(i);
    families.counter("candor_faults_total", "Exceptions that ended a request or a connection, by place",
                     static_cast<double>(server.faults.count(place)),
                     {{"place", std::string(http::place_name(place))}});
  }
  families.counter("candor_faults_total", "", static_cast<double>(n_engine_faults), {{"place", "engine"}});
  families.gauge("candor_generations", "Replies being made", server.n_jobs);
  families.gauge("candor_inflight_bytes", "Bytes of bodies, messages and replies held now",
                 static_cast<double>(server.bytes.used()));
  families.gauge("candor_inflight_bytes_limit", "Beyond it requests are refused with 503",
                 static_cast<double>(server.bytes.limit()));
  static constexpr std::array<const char*, 4> kFailures = {"plain", "left", "given_up", "protocol"};
  for (size_t i = 0; i < kFailures.size(); ++i) {
    families.counter("candor_tls_handshakes_failed_total",
                     "Connections that ended before their first request, by cause",
                     static_cast<double>(failed_handshakes_[i]), {{"cause", kFailures[i]}});
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [status, count] : replies_) {
    families.counter("candor_http_replies_total", "Replies by status", static_cast<double>(count),
                     {{"status", std::to_string(status)}});
  }
  return families.text();
}

}  // namespace candor::serve
