#include "capi/figures.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "serve/core/reply.h"

namespace candor::capi {
namespace {

using Json = nlohmann::ordered_json;

// Text of models may be no UTF-8.
std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json distribution(const Distribution& seen) {
  return {{"count", seen.count}, {"sum", seen.sum}, {"max", seen.max},
          {"p50", seen.p50},     {"p90", seen.p90}, {"p99", seen.p99}};
}

// null: the host computes alone.
Json device_json(const DeviceStats& device) {
  if (device.name.empty()) return nullptr;
  return {{"name", device.name},
          {"memory_bytes", device.memory_bytes},
          {"free_bytes", device.free_bytes},
          {"weight_bytes", device.weight_bytes},
          {"kv_bytes", device.kv_bytes},
          {"work_bytes", device.work_bytes},
          {"copied_in_bytes", device.copied_in_bytes},
          {"copied_out_bytes", device.copied_out_bytes},
          {"launches", device.launches},
          {"graph_launches", device.graph_launches}};
}

}  // namespace

std::string info_json(const ModelInfo& info) {
  Json paths = Json::array();
  for (const auto& path : info.paths) paths.push_back(path.string());
  return dumped({{"paths", paths},
                 {"format", info.format},
                 {"family", info.family},
                 {"tokenizer", info.tokenizer},
                 {"backend", info.backend},
                 {"backend_description", info.backend_description},
                 {"device_note", info.device_note},
                 {"weight_bytes", info.weight_bytes},
                 {"kv_bytes", info.kv_bytes},
                 {"kv_type", info.kv_type},
                 {"n_parameters", info.n_parameters},
                 {"n_layers", info.n_layers},
                 {"dim", info.dim},
                 {"n_vocab", info.n_vocab},
                 {"n_ctx", info.n_ctx},
                 {"n_ctx_train", info.n_ctx_train},
                 {"n_threads", info.n_threads},
                 {"bos", info.bos},
                 {"eos", info.eos},
                 {"end_tokens", info.end_tokens},
                 {"has_chat_template", info.has_chat_template},
                 {"writes", info.reading.writes},
                 {"embedding_dim", info.reading.dim},
                 {"labels", info.reading.labels},
                 {"ranks_pairs", info.reading.ranks_pairs()},
                 {"weighs_words", info.reading.weighs_words},
                 {"hash", fmt::format("{:016x}", info.hash)}});
}

std::string adapters_json(const std::vector<AdapterInfo>& adapters) {
  Json list = Json::array();
  for (const AdapterInfo& adapter : adapters) {
    list.push_back({{"name", adapter.name},
                    {"path", adapter.path.string()},
                    {"format", adapter.format},
                    {"scale", adapter.scale},
                    {"rank", adapter.rank},
                    {"n_matrices", adapter.n_matrices},
                    {"prompt", adapter.prompt},
                    {"memory_bytes", adapter.memory_bytes},
                    {"hash", fmt::format("{:016x}", adapter.hash)}});
  }
  return dumped(list);
}

std::string metrics_json(const EngineStats& stats, const EngineMetrics& metrics, const DeviceStats& device) {
  Json finished = Json::object();
  for (size_t i = 0; i < kFinishReasons; ++i) {
    finished[to_string(static_cast<FinishReason>(i))] = metrics.n_finished[i];
  }
  return dumped({{"n_steps", stats.n_steps},
                 {"n_rows", stats.n_rows},
                 {"n_sampled", stats.n_sampled},
                 {"n_submitted", stats.n_submitted},
                 {"n_finished", stats.n_finished},
                 {"n_waiting", stats.n_waiting},
                 {"n_running", stats.n_running},
                 {"n_preemptions", stats.n_preemptions},
                 {"cached_tokens", stats.cached_tokens},
                 {"kv_blocks_used", stats.kv_blocks_used},
                 {"kv_blocks_cached", stats.kv_blocks_cached},
                 {"kv_blocks_total", stats.kv_blocks_total},
                 {"finish", finished},
                 {"queue_ms", distribution(metrics.queue_ms)},
                 {"ttft_ms", distribution(metrics.ttft_ms)},
                 {"itl_ms", distribution(metrics.itl_ms)},
                 {"tpot_ms", distribution(metrics.tpot_ms)},
                 {"e2e_ms", distribution(metrics.e2e_ms)},
                 {"step_ms", distribution(metrics.step_ms)},
                 {"device", device_json(device)}});
}

std::string summary_json(const RequestSummary& summary) {
  const Usage& usage = summary.usage;
  const RequestTimings& timings = summary.timings;
  return dumped({{"prompt_tokens", usage.prompt_tokens},
                 {"completion_tokens", usage.completion_tokens},
                 {"cached_tokens", usage.cached_tokens},
                 {"disk_tokens", usage.disk_tokens},
                 {"truncated_tokens", usage.truncated_tokens},
                 {"cropped_tokens", usage.cropped_tokens},
                 {"seed", usage.seed},
                 {"queue_ms", timings.queue_ms},
                 {"images_ms", timings.images_ms},
                 {"ttft_ms", timings.ttft_ms},
                 {"e2e_ms", timings.e2e_ms},
                 {"prefill_ms", timings.prefill_ms},
                 {"decode_ms", timings.decode_ms},
                 {"prefill_tokens_per_s", timings.prefill_tokens_per_s},
                 {"decode_tokens_per_s", timings.decode_tokens_per_s},
                 {"itl_mean_ms", timings.itl_mean_ms},
                 {"itl_max_ms", timings.itl_max_ms},
                 {"has_receipt", summary.receipt != nullptr},
                 {"warnings", summary.warnings}});
}

std::string explanation_text(const Engine& engine, const TokenEvent& event) {
  return dumped(serve::explanation_json(engine, event));
}

std::string messages_json(const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& message : messages) {
    Json one = {{"role", message.role}, {"content", message.content}};
    if (!message.extra_json.empty()) one.update(Json::parse(message.extra_json, nullptr, false));
    list.push_back(std::move(one));
  }
  return dumped(list);
}

}  // namespace candor::capi
