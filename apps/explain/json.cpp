#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "apps/bench/machine_limits.h"
#include "apps/explain/image_map.h"
#include "apps/explain/inside.h"
#include "apps/explain/page.h"
#include "apps/explain/positions.h"
#include "apps/explain/stages.h"
#include "apps/explain/trace.h"
#include "backend/wrap/timed_backend.h"
#include "candor/engine.h"
#include "model/arch_spec.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

Json options_json(const Engine& engine, const TokenExplanation& explanation) {
  Json options = Json::array();
  for (const BeamOption& option : explanation.beam_options) {
    options.push_back({{"parent", option.parent},
                       {"token", option.token},
                       {"piece", engine.piece(option.token)},
                       {"score", option.score},
                       {"fate", to_string(option.fate)}});
  }
  return options;
}

Json to_json(const Engine& engine, const TokenEvent& event) {
  Json token = {{"token", event.token}, {"piece", engine.piece(event.token)}, {"text", event.text}};
  if (event.logprob) token["logprob"] = event.logprob->logprob;
  if (event.finish) token["finish_reason"] = to_string(*event.finish);
  if (!event.explanation) return token;
  const TokenExplanation& explanation = *event.explanation;
  if (explanation.beam_option) {
    token["answer"] = event.choice;
    token["beam_option"] = *explanation.beam_option;
    token["beam_options"] = options_json(engine, explanation);
    if (event.score) token["score"] = *event.score;
  } else {
    token["was_drawn"] = explanation.was_drawn;
    token["draw"] = explanation.was_drawn ? Json(explanation.draw) : Json();
  }
  if (explanation.draft >= 0)
    token["draft"] = {{"token", explanation.draft}, {"accepted", explanation.draft == event.token}};
  for (const StageView& stage : explanation.stages) {
    if (stage.name == "mask") token["mask_size"] = stage.n_left;
  }
  if (!explanation.images.empty()) token["images"] = images_json(explanation.images);
  token["stages"] = stages_json(explanation.stages, [&](TokenId id) { return std::string(engine.piece(id)); });
  return token;
}

Json to_json(const Phase& phase) {
  Json ops = Json::object();
  for (size_t i = 0; i < backend::kOpKinds; ++i) {
    const backend::OpKind kind = static_cast<backend::OpKind>(i);
    const backend::OpTime& time = phase.ops.of(kind);
    if (time.n_calls == 0) continue;
    ops[std::string(backend::op_name(kind))] = {
        {"calls", time.n_calls}, {"ms", static_cast<double>(time.ns) * 1e-6}, {"weight_bytes", time.weight_bytes}};
  }
  return {{"steps", phase.n_steps},      {"rows", phase.n_rows},     {"compute_ms", phase.compute_ms},
          {"plan_ms", phase.plan_ms},    {"pick_ms", phase.pick_ms}, {"weight_bytes", phase.ops.total().weight_bytes},
          {"operations", std::move(ops)}};
}

Json shapes_of(const ModelInfo& info, const Trace& trace) {
  const size_t n = trace.prompt.size();
  Json shapes = {{"embedding", {1, n, info.dim}}, {"layers", info.n_layers}, {"logits", {1, 1, info.n_vocab}}};
  if (trace.spec.blocks.empty()) return shapes;
  const model::BlockSpec& block = trace.spec.blocks.front();
  shapes["queries"] = {1, n, block.attn.n_heads, block.attn.head_dim};
  shapes["keys"] = {1, n, block.attn.n_kv_heads, block.attn.head_dim};
  shapes["scores"] = {1, block.attn.n_heads, n, n};
  shapes["feed_forward"] = {1, n, block.ffn.ffn_dim};
  return shapes;
}

}  // namespace

std::string explain_json(const Engine& engine, const Trace& trace, const PageWish& wish) {
  const ModelInfo& info = engine.info();
  const RequestTimings& t = trace.summary.timings;
  const Usage& usage = trace.summary.usage;
  Json prompt = Json::array();
  for (const TokenId token : trace.prompt) prompt.push_back({{"token", token}, {"piece", engine.piece(token)}});
  Json tokens = Json::array();
  for (const TokenEvent& event : trace.events) tokens.push_back(to_json(engine, event));
  Json json = {{"prompt", std::move(prompt)},
               {"shapes", shapes_of(info, trace)},
               {"positions", positions_json(trace.positions, static_cast<int32_t>(trace.prompt.size()) - 1)},
               {"parameters", info.n_parameters},
               {"weight_bytes", info.weight_bytes},
               {"kv_bytes", info.kv_bytes},
               {"timings", {{"prefill_ms", t.prefill_ms}, {"decode_ms", t.decode_ms}, {"itl_mean_ms", t.itl_mean_ms}}},
               {"prefill", to_json(trace.prefill)},
               {"decode", to_json(trace.decode)},
               {"drafted_tokens", usage.drafted_tokens},
               {"accepted_tokens", usage.accepted_tokens},
               {"seed", trace.was_drawn ? Json(usage.seed) : Json()},
               {"tokens", std::move(tokens)}};
  const TokenName piece = [&](TokenId id) { return std::string(engine.piece(id)); };
  if (trace.embedding)
    json["embedding"] = {
        {"token", trace.embedding->token}, {"first", trace.embedding->first}, {"length", trace.embedding->norm}};
  if (!trace.operations.empty()) json["operations"] = trace.operations;
  if (wish.inside) json["layers"] = inside_json(*wish.inside, piece);
  const auto limits = known_limits(info);
  if (limits) json["limits"] = limits_json(*limits, info.n_threads);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace candor::apps
