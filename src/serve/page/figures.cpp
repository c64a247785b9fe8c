#include "serve/page/figures.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "candor/drafts.h"
#include "candor/info.h"
#include "candor/metrics.h"
#include "candor/presets.h"
#include "candor/request.h"
#include "candor/sampling_table.h"
#include "candor/version.h"
#include "obs/clock.h"
#include "platform/power.h"
#include "platform/topology.h"
#include "sample/chain.h"
#include "serve/core/json_body.h"
#include "serve/core/models.h"
#include "serve/core/step_history.h"

namespace candor::serve::page {
namespace {

Json number_json(const SamplingNumber& number) {
  static const SamplingParams kDefaults;
  const bool is_whole = std::holds_alternative<std::int64_t SamplingParams::*>(number.member);
  Json json = {{"name", number.name}, {"least", number.api_least}, {"most", number.api_most}};
  json["default"] = value_of(number, kDefaults);
  json["whole"] = is_whole;
  json["note"] = number.note;
  json["help"] = number.help;
  return json;
}

Json model_json(const Core& core) {
  const ModelInfo& info = core.engine.info();
  return {{"id", core.limits().model},
          {"path", info.paths.empty() ? std::string() : info.paths.front().string()},
          {"family", info.family},
          {"format", info.format},
          {"backend", info.backend_description},
          {"device_note", info.device_note},
          {"n_parameters", info.n_parameters},
          {"n_layers", info.n_layers},
          {"dim", info.dim},
          {"n_vocab", info.n_vocab},
          {"n_ctx", info.n_ctx},
          {"n_ctx_train", info.n_ctx_train},
          {"kv_type", info.kv_type},
          {"n_threads", info.n_threads},
          {"has_chat_template", info.has_chat_template},
          {"chat_template_error", info.chat_template_error},
          {"draft", info.draft_path.string()},
          {"images", !info.images.empty()},
          {"attention", info.shows_attention},
          {"writes", info.reading.writes},
          {"labels", info.reading.labels},
          {"labels_tokens", info.reading.labels_tokens},
          {"ranks_pairs", info.reading.ranks_pairs()}};
}

Json distribution_json(const Distribution& seen) {
  Json buckets = Json::array();
  for (const Distribution::Bucket& bucket : seen.buckets) buckets.push_back({bucket.upper, bucket.count});
  return {{"count", seen.count}, {"p50", seen.p50}, {"p90", seen.p90},
          {"p99", seen.p99},     {"max", seen.max}, {"buckets", std::move(buckets)}};
}

Json steps_json(const StepHistory* history, int64_t n_known) {
  if (history == nullptr) return nullptr;
  const StepHistory::Newest newest = history->since(n_known);
  Json rows = Json::array();
  const size_t n_operations = history->operations().size();
  for (const StepRecord& record : newest.steps) {
    const StepReport& step = record.report;
    Json row = {step.n_prefill_rows, step.n_rows - step.n_prefill_rows - step.n_draft_rows,
                step.n_draft_rows,   step.n_sequences,
                step.plan_ms,        step.compute_ms,
                step.pick_ms};
    const bool is_measured = std::ranges::any_of(record.operation_us, [](int32_t us) { return us > 0; });
    row.push_back(std::span(record.operation_us).first(is_measured ? n_operations : 0));
    rows.push_back(std::move(row));
  }
  const StepHistory::Totals& totals = newest.totals;
  return {{"n", totals.n_steps},
          {"prefill_rows", totals.n_prefill_rows},
          {"decode_rows", totals.n_decode_rows},
          {"draft_rows", totals.n_draft_rows},
          {"busy_ms", totals.busy_ms},
          {"operations", history->operations()},
          {"newest", std::move(rows)}};
}

// By who drafted; empty where nobody may.
Json drafts_json(const EngineMetrics& seen, const ModelInfo& info) {
  Json rows = Json::array();
  for (size_t i = 0; i < kDraftSources; ++i) {
    const auto source = static_cast<DraftSource>(i);
    const DraftUsage& usage = seen.drafts[i];
    const bool is_here = std::ranges::find(info.drafters, source) != info.drafters.end();
    if (!is_here && usage.n_steps == 0) continue;
    rows.push_back({{"drafter", to_string(source)},
                    {"steps", usage.n_steps},
                    {"drafted", usage.drafted_tokens},
                    {"accepted", usage.accepted_tokens},
                    {"plain_ms", usage.plain_ms},
                    {"added_ms", usage.added_ms},
                    {"saved_ms", usage.saved_ms}});
  }
  return rows;
}

// Of the device that computes, else of the machine.
Json memory_json(const ModelInfo& info, const DeviceStats& device) {
  if (!device.name.empty()) {
    return {{"device", device.name},
            {"weights", device.weight_bytes},
            {"kv", device.kv_bytes},
            {"available", device.free_bytes},
            {"machine", device.memory_bytes}};
  }
  const platform::Topology machine = platform::read_topology();
  return {{"device", nullptr},
          {"weights", info.weight_bytes},
          {"kv", info.kv_bytes},
          {"available", machine.memory_available_bytes},
          {"machine", machine.memory_bytes}};
}

// Of each package; nothing where the system does not tell.
Json energy_json() {
  Json packages = Json::array();
  for (const platform::EnergyCounter& counter : platform::read_energy())
    packages.push_back({counter.name, counter.microjoules, counter.range_microjoules});
  return packages.empty() ? Json(nullptr) : packages;
}

// Of "steps=N"; nothing where it says something else.
std::optional<int64_t> known_steps(std::string_view query) {
  constexpr std::string_view kName = "steps=";
  int64_t n = 0;
  if (!query.starts_with(kName)) return std::nullopt;
  std::from_chars(query.data() + kName.size(), query.data() + query.size(), n);
  return n;
}

// A client that asks for steps looks at them: from now on, for a while, their operations are measured.
void note_look(const StepHistory* steps, bool asks_for_steps) {
  if (steps != nullptr && asks_for_steps) steps->look(obs::SteadyClock().now_ns());
}

}  // namespace

void send_parameters(const Core& core, http::Exchange& exchange) {
  Json numbers = Json::array();
  for (const SamplingNumber& number : kSamplingNumbers) numbers.push_back(number_json(number));
  Json presets = Json::array();
  for (const SamplingPreset& preset : kSamplingPresets) {
    presets.push_back({{"name", preset.name}, {"temperature", preset.temperature}, {"top_p", preset.top_p}});
  }
  Json stages = Json::array();
  for (const sample::Stage stage : sample::kDefaultStages) stages.push_back(sample::to_string(stage));
  answer(exchange, Json{{"version", kVersion},
                        {"numbers", std::move(numbers)},
                        {"presets", std::move(presets)},
                        {"stages", std::move(stages)},
                        {"limits",
                         {{"top_logprobs", kMaxLogprobs},
                          {"choices", core.limits().max_choices},
                          {"beams", kMaxBeams},
                          {"stops", kMaxStopStrings}}},
                        {"model", model_json(core)}});
}

void send_live(const ServerCore& server, http::Exchange& exchange) {
  const auto loaded = server.models.loaded();
  if (loaded.empty()) return answer(exchange, Error{ErrorKind::kOverloaded, "no model is loaded now"});
  const Core& core = *loaded.front().second;
  const auto n_known = known_steps(exchange.request().query);
  note_look(server.steps, n_known.has_value());
  const double read_limit = core.generations.read_limit();
  const EngineStats stats = core.engine.stats();
  const EngineMetrics seen = core.engine.metrics();
  const ModelInfo& info = core.engine.info();
  const double weights = static_cast<double>(info.used_weight_bytes);
  Json limit = nullptr;
  if (read_limit > 0 && weights > 0) {
    limit = {{"read_bytes_per_s", read_limit}, {"steps_per_s", read_limit / weights}};
  }
  Json json = {{"sampled_tokens", stats.n_sampled},
               {"computed_tokens", stats.n_rows},
               {"cached_tokens", stats.cached_tokens},
               {"preemptions", stats.n_preemptions},
               {"waiting", stats.n_waiting},
               {"running", stats.n_running},
               {"kv_blocks",
                {{"used", stats.kv_blocks_used},
                 {"cached", stats.kv_blocks_cached},
                 {"total", stats.kv_blocks_total},
                 {"tokens", info.kv_block_tokens}}},
               {"ttft_ms", distribution_json(seen.ttft_ms)},
               {"itl_ms", distribution_json(seen.itl_ms)},
               {"tpot_ms", distribution_json(seen.tpot_ms)},
               {"queue_ms", distribution_json(seen.queue_ms)},
               {"step_ms", distribution_json(seen.step_ms)},
               {"refused", seen.n_refused},
               {"generations", core.places.n_tickets()},
               {"inflight_bytes", {{"used", core.bytes.used()}, {"limit", core.bytes.limit()}}},
               {"memory", memory_json(info, core.engine.device())},
               {"energy_uj", energy_json()},
               {"limit", std::move(limit)},
               {"drafts", drafts_json(seen, info)},
               {"steps", steps_json(server.steps, n_known.value_or(0))}};
  answer(exchange, json);
}

}  // namespace candor::serve::page
