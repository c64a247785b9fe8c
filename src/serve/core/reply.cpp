#include "serve/core/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/utf8.h"
#include "candor/drafts.h"
#include "candor/version.h"

namespace candor::serve {
namespace {

// By who drafted.
Json drafts_json(const DraftUsages& drafts) {
  Json json = Json::object();
  for (size_t i = 0; i < kDraftSources; ++i) {
    if (drafts[i].drafted_tokens == 0) continue;
    json[to_string(static_cast<DraftSource>(i))] = {{"n", drafts[i].drafted_tokens},
                                                    {"n_accepted", drafts[i].accepted_tokens}};
  }
  return json;
}

}  // namespace

void ReplyUsage::add(const RequestSummary& summary) {
  usage.prompt_tokens += summary.usage.prompt_tokens;
  usage.completion_tokens += summary.usage.completion_tokens;
  usage.cached_tokens += summary.usage.cached_tokens;
  usage.disk_tokens += summary.usage.disk_tokens;
  usage.truncated_tokens += summary.usage.truncated_tokens;
  usage.image_tokens += summary.usage.image_tokens;
  usage.drafted_tokens += summary.usage.drafted_tokens;
  usage.accepted_tokens += summary.usage.accepted_tokens;
  for (size_t i = 0; i < kDraftSources; ++i) usage.drafts[i] += summary.usage.drafts[i];
  usage.seed = summary.usage.seed;
  timings = summary.timings;
}

Json prompt_progress_json(const Waiting& waiting) {
  const PromptProgress& prompt = waiting.prompt;
  return {{"total", prompt.n_prompt},
          {"cache", prompt.n_cached},
          {"processed", prompt.n_read},
          {"time_ms", static_cast<int64_t>(waiting.ms)}};
}

std::string left_out_call(const std::string& name) {
  return fmt::format("a further call, of {}, is left out: only one was asked for", name);
}

bool is_cut(FinishReason reason) {
  return reason == FinishReason::kLength || reason == FinishReason::kContextFull || reason == FinishReason::kDeadline;
}

Json stop_reason(const ReplyHead& head, const TokenEvent& event) {
  switch (event.finish.value_or(FinishReason::kLength)) {
    case FinishReason::kStopString:
      return head.stops.at(event.stop_index.value_or(0));
    case FinishReason::kStopId:
      return head.stop_ids.at(event.stop_index.value_or(0));
    case FinishReason::kContextFull:
    case FinishReason::kDeadline:
    case FinishReason::kCancelled:
      return to_string(*event.finish);
    default:
      return nullptr;
  }
}

Json timings_json(const ReplyUsage& sum, double decode_limit) {
  const Usage& usage = sum.usage;
  const RequestTimings& t = sum.timings;
  const int64_t n_read = usage.prompt_tokens - usage.cached_tokens;
  const auto per = [](double ms, int64_t n) { return n > 0 ? ms / static_cast<double>(n) : 0.0; };
  Json json = {{"cache_n", usage.cached_tokens},
               {"prompt_n", n_read},
               {"prompt_ms", t.prefill_ms},
               {"prompt_per_token_ms", per(t.prefill_ms, n_read)},
               {"prompt_per_second", t.prefill_tokens_per_s},
               {"predicted_n", usage.completion_tokens},
               {"predicted_ms", t.decode_ms},
               {"predicted_per_token_ms", t.decode_tokens_per_s > 0 ? 1e3 / t.decode_tokens_per_s : 0.0},
               {"predicted_per_second", t.decode_tokens_per_s},
               {"template_ms", t.template_ms},
               {"tokenize_ms", t.tokenize_ms},
               {"queue_ms", t.queue_ms},
               {"ttft_ms", t.ttft_ms},
               {"seed", usage.seed}};
  for (const PromptChunk& chunk : t.prompt_chunks.list())
    json["prompt_chunks"].push_back({chunk.begin_ms, chunk.end_ms - chunk.begin_ms, chunk.n_tokens});
  if (usage.image_tokens > 0) {
    json["image_n"] = usage.image_tokens;
    json["images_ms"] = t.images_ms;
  }
  if (usage.drafted_tokens > 0) {
    json["draft_n"] = usage.drafted_tokens;
    json["draft_n_accepted"] = usage.accepted_tokens;
    json["drafts"] = drafts_json(usage.drafts);
  }
  if (decode_limit > 0 && t.decode_tokens_per_s > 0) json["limit_share"] = t.decode_tokens_per_s / decode_limit;
  return json;
}

float finite_logprob(float logprob) {
  constexpr float kNever = -9999.0f;
  return std::isfinite(logprob) ? std::max(logprob, kNever) : kNever;
}

namespace {

Json candidates_json(const Engine& engine, const std::vector<StageView::Candidate>& candidates) {
  Json list = Json::array();
  for (const StageView::Candidate& candidate : candidates) {
    list.push_back({{"token", candidate.token},
                    {"text", token_text(engine, candidate.token)},
                    {"logit", candidate.logit},
                    {"probability", candidate.probability}});
  }
  return list;
}

Json changes_json(const Engine& engine, const StageView& stage) {
  Json list = Json::array();
  for (const StageView::Change& change : stage.changed) {
    list.push_back({{"token", change.token},
                    {"text", token_text(engine, change.token)},
                    {"before", change.before},
                    {"after", change.after},
                    {"n_in_text", change.n_in_text},
                    {"n_in_output", change.n_in_output}});
  }
  return list;
}

Json beam_options_json(const Engine& engine, const TokenExplanation& explanation) {
  Json options = Json::array();
  for (const BeamOption& option : explanation.beam_options) {
    options.push_back({{"parent", option.parent},
                       {"token", option.token},
                       {"text", token_text(engine, option.token)},
                       {"score", option.score},
                       {"fate", to_string(option.fate)}});
  }
  return options;
}

// A millionth is the smallest share that is told.
double rounded_share(double share) {
  return std::round(share * 1e6) / 1e6;
}

Json attention_json(const std::vector<ImageAttention>& images) {
  Json list = Json::array();
  for (const ImageAttention& image : images) {
    Json tiles = Json::array();
    for (const ImageAttention::Tile& tile : image.tiles) {
      Json shares = Json::array();
      for (const float share : tile.shares) shares.push_back(rounded_share(static_cast<double>(share)));
      tiles.push_back({{"rows", tile.rows},
                       {"cols", tile.cols},
                       {"box", {tile.left, tile.top, tile.width, tile.height}},
                       {"is_whole", tile.is_whole},
                       {"shares", std::move(shares)}});
    }
    list.push_back({{"width", image.image_width},
                    {"height", image.image_height},
                    {"share", rounded_share(image.share)},
                    {"tiles", std::move(tiles)}});
  }
  return list;
}

}  // namespace

Json explanation_json(const Engine& engine, const TokenEvent& event) {
  const TokenExplanation& explanation = *event.explanation;
  Json stages = Json::array();
  for (const StageView& stage : explanation.stages) {
    stages.push_back({{"name", stage.name},
                      {"n_left", stage.n_left},
                      {"best", candidates_json(engine, stage.best)},
                      {"cut", candidates_json(engine, stage.cut)},
                      {"lowered", candidates_json(engine, stage.lowered)},
                      {"cut_probability", stage.cut_probability},
                      {"changed", changes_json(engine, stage)},
                      {"n_changed", stage.n_changed}});
  }
  Json json = {{"token", event.token}, {"text", token_text(engine, event.token)}, {"stages", std::move(stages)}};
  json["draw"] = explanation.was_drawn ? Json(explanation.draw) : Json();
  json["draft"] = explanation.draft >= 0 ? Json(explanation.draft) : Json();
  if (explanation.beam_option) {
    json["beam_option"] = *explanation.beam_option;
    json["beam_options"] = beam_options_json(engine, explanation);
  }
  if (!explanation.images.empty()) json["images"] = attention_json(explanation.images);
  return json;
}

std::string token_text(const Engine& engine, TokenId token) {
  const std::string_view bytes = engine.token_bytes(token);
  return to_valid_utf8(bytes.empty() ? engine.piece(token) : bytes);
}

Json token_json(const Engine& engine, const TokenLogprob& token) {
  std::string_view bytes = engine.token_bytes(token.token);
  if (bytes.empty()) bytes = engine.piece(token.token);
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return {{"token", to_valid_utf8(bytes)}, {"logprob", finite_logprob(token.logprob)}, {"bytes", std::move(list)}};
}

std::string fingerprint_of(const std::string& base, const Engine& engine, const std::vector<RequestAdapter>& adapters) {
  if (adapters.empty()) return base;
  std::vector<std::pair<uint64_t, uint32_t>> used;
  for (const AdapterInfo& info : engine.adapters()) {
    const auto named = std::ranges::find(adapters, info.name, &RequestAdapter::name);
    if (named == adapters.end()) continue;
    const auto scale = static_cast<float>(info.scale * named->scale);
    if (scale != 0.0f) used.emplace_back(info.hash, std::bit_cast<uint32_t>(scale));
  }
  std::ranges::sort(used);
  uint64_t hash = 0;
  for (const auto& [content, scale] : used) hash = hash_mix(hash_mix(hash, content), scale);
  return used.empty() ? base : fmt::format("{}+{:016x}", base, hash);
}

std::string fingerprint_of_all(const Engine& engine) {
  std::vector<RequestAdapter> all;
  for (const AdapterInfo& info : engine.adapters()) all.push_back({info.name});
  return fingerprint_of(fingerprint_of(engine.info()), engine, all);
}

std::string fingerprint_of(const ModelInfo& info) {
  return fmt::format("fp_{:016x}_{}", info.hash, kNumericsVersion);
}

}  // namespace candor::serve
