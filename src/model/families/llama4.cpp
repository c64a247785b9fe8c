// Llama 4 (text): three blocks of four rotate, norm the heads of Q and K without gains and see their own chunk of
// positions alone; the fourth sees everything, does not rotate, and its queries grow with their position. Blocks with
// experts, which may stand between dense ones, weigh what an expert reads by a sigmoid, and have a shared one. Meta,
// 2025.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"

namespace candor::model {
namespace llama4 {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr int32_t kPattern = 4;
constexpr int32_t kChunk = 8192;
constexpr double kGain = 0.1;
constexpr int32_t kExpertsWithoutNorms = 128;  // Maverick, as llama.cpp knows it

constexpr std::array kShared = {
    TensorName{kSharedGate, "blk.*.ffn_gate_shexp.weight"},
    TensorName{kSharedUp, "blk.*.ffn_up_shexp.weight"},
    TensorName{kSharedDown, "blk.*.ffn_down_shexp.weight"},
};
constexpr auto kTensors =
    join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors, kMoeTensors, kShared);
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // part of the RopeSpec

constexpr std::array kHubFfn = {
    HubTensor{"blk.*.ffn_gate.weight", "model.layers.*.feed_forward.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.feed_forward.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.feed_forward.down_proj.weight"},
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.feed_forward.router.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate_shexp.weight", "model.layers.*.feed_forward.shared_expert.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up_shexp.weight", "model.layers.*.feed_forward.shared_expert.up_proj.weight"},
    HubTensor{"blk.*.ffn_down_shexp.weight", "model.layers.*.feed_forward.shared_expert.down_proj.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubFfn);
constexpr HubExperts kHubJoined[] = {
    {"model.layers.*.feed_forward.experts.gate_up_proj", {"blk.*.ffn_gate_exps", "blk.*.ffn_up_exps"}, true},
    {"model.layers.*.feed_forward.experts.down_proj", {"blk.*.ffn_down_exps", ""}},
};

Error unsupported(const char* key, const json& value, std::string_view supported) {
  return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"{}\" is {}, which is not supported (supported: {})",
                                                   key, formats::in_quotes(value.dump()), supported));
}

Result<uint64_t> hub_count(const HubConfig& config, const char* key, uint64_t fallback) {
  CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, key));
  if (!value) return fallback;
  if (*value >= 0.0 && *value <= static_cast<double>(kMaxPositions) && *value == std::floor(*value)) {
    return static_cast<uint64_t>(*value);
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("config.json: \"{}\" is {}, expected 0 to {}", key, *value, kMaxPositions));
}

// no_rope_layers: 1 where a block rotates and sees a chunk; where it is absent or empty by an interval.
Result<void> read_pattern(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const std::string key = fmt::format("{}.attention.sliding_window_pattern", prefix);
  const json* list = config.find("no_rope_layers");
  if (list == nullptr || !list->is_array() || list->empty()) {
    CANDOR_ASSIGN(const uint64_t interval, hub_count(config, "no_rope_layer_interval", kPattern));
    metadata.add(key, interval);
    return {};
  }
  std::vector<bool> flags;
  for (const json& flag : *list) {
    if (flag != 0 && flag != 1) return unsupported("no_rope_layers", *list, "a list of 0 and 1");
    flags.push_back(flag == 1);
  }
  if (const json* types = config.find("layer_types"); types != nullptr && types->is_array()) {
    for (size_t i = 0; i < std::min(flags.size(), types->size()); ++i) {
      if ((*types)[i] == (flags[i] ? "chunked_attention" : "full_attention")) continue;
      return unsupported("layer_types", (*types)[i], "chunked_attention where no_rope_layers is 1");
    }
  }
  metadata.add(key, formats::MetaArray(std::move(flags)));
  return {};
}

// Every so manyth block has experts: moe_layers lists them.
Result<uint64_t> step_of_experts(const HubConfig& config) {
  const json& layers = config["moe_layers"];
  const bool is_list = layers.is_array() && !layers.empty() && layers.front().is_number_unsigned();
  const uint64_t step = is_list ? layers.front().get<uint64_t>() + 1 : 0;
  for (size_t i = 0; i < layers.size() && is_list; ++i) {
    if (layers[i] != (i + 1) * step - 1) return unsupported("moe_layers", layers, "one block in so many, evenly");
  }
  if (!is_list) return config.bad("moe_layers", layers, "a list of blocks");
  return step;
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const auto add = [&](const char* suffix, formats::MetaValue value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), std::move(value));
  };
  CANDOR_ASSIGN(const auto has_bias, hub_flag(config, "attention_bias"));
  if (has_bias.value_or(false)) return unsupported("attention_bias", true, "false");
  CANDOR_ASSIGN(const uint64_t step, step_of_experts(config));
  CANDOR_ASSIGN(const uint64_t chunk, hub_count(config, "attention_chunk_size", kChunk));
  CANDOR_ASSIGN(const uint64_t expert_dim, hub_count(config, "intermediate_size", 0));
  CANDOR_ASSIGN(const uint64_t dense_dim, hub_count(config, "intermediate_size_mlp", expert_dim));
  CANDOR_ASSIGN(const uint64_t floor_scale, hub_count(config, "floor_scale", kChunk));
  CANDOR_ASSIGN(const std::optional<double> gain, hub_number(config, "attn_scale"));
  CANDOR_ASSIGN(const auto has_norms, hub_flag(config, "use_qk_norm"));
  const json* tuning = config.find("attn_temperature_tuning");
  const bool is_tuned = tuning != nullptr && *tuning != false && *tuning != 0;
  add("interleave_moe_layer_step", step);
  add("attention.sliding_window", chunk);
  add("expert_feed_forward_length", expert_dim);
  add("feed_forward_length", dense_dim);
  add("attention.temperature_length", floor_scale);
  add("attention.temperature_scale", is_tuned ? static_cast<double>(static_cast<float>(gain.value_or(kGain))) : 0.0);
  add("attention.has_qk_norm", has_norms.value_or(true));
  return read_pattern(config, prefix, metadata);
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  json flags = json::array();
  json types = json::array();
  json sparse = json::array();
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    const BlockSpec& block = spec.blocks[layer];
    const bool rotates = block.attn.rope.n_dims > 0;
    flags.push_back(rotates ? 1 : 0);
    types.push_back(rotates ? "chunked_attention" : "full_attention");
    if (rotates) {
      config["attention_chunk_size"] = block.attn.chunk_tokens;
      config["use_qk_norm"] = block.qk_norm != QkNorm::kNone;
    } else {
      config["attn_temperature_tuning"] = block.attn.temper.gain > 0.0f;
      config["attn_scale"] = shortest_decimal(block.attn.temper.gain);
      config["floor_scale"] = block.attn.temper.step;
    }
    if (block.ffn.is_moe()) {
      sparse.push_back(layer);
      config["intermediate_size"] = block.ffn.ffn_dim;
      config["num_local_experts"] = block.ffn.moe.n_experts;
      config["num_experts_per_tok"] = block.ffn.moe.n_used;
    } else {
      config["intermediate_size_mlp"] = block.ffn.ffn_dim;
    }
  }
  const size_t first = sparse[0].get<size_t>();
  config["interleave_moe_layer_step"] = first + 1;
  config["moe_layers"] = sparse;
  config["no_rope_layers"] = flags;
  config["layer_types"] = types;
  if (!config.contains("intermediate_size_mlp")) config["intermediate_size_mlp"] = config["intermediate_size"];
  for (const char* key : {"moe_intermediate_size", "shared_expert_intermediate_size", "num_experts", "norm_topk_prob",
                          "sliding_window"}) {
    config.erase(key);
  }
}

constexpr std::string_view kImages[] = {"vision_model.", "multi_modal_projector.", "model.vision_model.",
                                        "model.multi_modal_projector."};
constexpr HubOuter kOuter[] = {{"llama4", kImages, ""}};
constexpr HubForm kHub[] = {{.model_type = "llama4_text",
                             .architecture = "Llama4ForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .experts = kHubJoined,
                             .outer = kOuter,
                             .has_own_kinds = true}};

// Blocks that see everything: how their queries grow.
Result<backend::TemperSpec> read_temper(const Hparams& hparams) {
  const std::string key = hparams.key("attention.temperature_scale");
  CANDOR_ASSIGN(const auto gain, formats::meta_float(hparams.file(), key));
  if (gain && *gain == 0.0) return backend::TemperSpec{};
  if (gain && !(*gain > 0.0 && *gain <= 1e3)) {
    return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\" is {}; expected 0 to 1000", key, *gain));
  }
  backend::TemperSpec temper{static_cast<float>(gain.value_or(kGain)), kChunk, 1};
  CANDOR_ASSIGN(temper.step, hparams.int_or("attention.temperature_length", kChunk, {1, kMaxPositions}));
  return temper;
}

Result<void> add_experts(const Hparams& hparams, ArchSpec& spec) {
  const auto n_layers = static_cast<int64_t>(spec.blocks.size());
  backend::MoeSpec moe;
  CANDOR_ASSIGN(moe.n_experts, hparams.require_int("expert_count", {1, 65536}));
  CANDOR_ASSIGN(moe.n_used, hparams.require_int("expert_used_count", {1, moe.n_experts}));
  CANDOR_ASSIGN(const int32_t ffn_dim, hparams.require_int("expert_feed_forward_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(const int32_t step, hparams.require_int("interleave_moe_layer_step", {1, n_layers}));
  moe.renormalise = false;
  moe.share = backend::ExpertShare::kSigmoid;
  moe.weighs_inputs = true;
  for (size_t layer = static_cast<size_t>(step) - 1; layer < spec.blocks.size(); layer += static_cast<size_t>(step)) {
    spec.blocks[layer].ffn = {.ffn_dim = ffn_dim, .moe = moe, .shared_dim = ffn_dim, .is_shared_gated = false};
  }
  return {};
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "llama4");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  const int32_t n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_TRY(add_experts(hparams, spec));
  CANDOR_ASSIGN(const std::vector<bool> is_chunked, read_window_pattern(hparams, n_layers, kPattern));
  CANDOR_ASSIGN(const int32_t chunk, hparams.int_or("attention.sliding_window", kChunk, {1, kMaxPositions}));
  CANDOR_ASSIGN(const backend::TemperSpec temper, read_temper(hparams));
  CANDOR_ASSIGN(const auto stated, formats::meta_bool(file, hparams.key("attention.has_qk_norm")));
  CANDOR_ASSIGN(const int32_t n_experts, hparams.require_int("expert_count", {1, 65536}));
  const bool has_norms = stated.value_or(n_experts != kExpertsWithoutNorms);
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn.window_tokens = 0;
    if (is_chunked[layer]) {
      block.attn.chunk_tokens = chunk;
      if (has_norms) {
        block.qk_norm = QkNorm::kHeads;
        block.attn.rope.attention_factor = 1.0;  // heads are normed behind their rotation, which undoes it
      }
    } else {
      block.attn.rope = {};
      block.attn.temper = temper;
    }
  }
  return spec;
}

}  // namespace
}  // namespace llama4

Family llama4_family() {
  using namespace llama4;
  return {"llama4", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
