#include "model/hub/hub_config_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/op_specs.h"
#include "model/hparams.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_names.h"

namespace candor::model {
namespace {

using backend::RopeScaling;
using backend::RopeSpec;
using Json = nlohmann::ordered_json;

// The factors of rope_freqs.weight as Llama 3's rule: the first context is a power of two, the rest what its models
// have.
std::optional<RopeSpec> as_llama3(const RopeSpec& rope) {
  RopeSpec plain = rope;
  plain.frequency_factors.clear();
  const std::vector<double> base = backend::rope_frequencies(plain);
  RopeSpec tried = plain;
  tried.scaling = RopeScaling::kLlama3;
  tried.factor = shortest_decimal(std::ranges::max(rope.frequency_factors));
  for (tried.original_positions = 8; tried.original_positions <= (1 << 20); tried.original_positions *= 2) {
    const std::vector<double> scaled = backend::rope_frequencies(tried);
    bool agrees = true;
    for (size_t i = 0; i < base.size(); ++i) {
      const double factor = static_cast<double>(rope.frequency_factors[i]);
      agrees &= std::fabs(base[i] / scaled[i] - factor) <= 1e-5 * factor;
    }
    if (agrees) return tried;
  }
  return std::nullopt;
}

Result<Json> factors_of(const formats::ModelFile& file, const char* name, int32_t n_dims) {
  CANDOR_ASSIGN(const std::vector<float> factors, read_frequency_factors(file, name, n_dims));
  Json list = Json::array();
  for (const float factor : factors) list.push_back(shortest_decimal(factor));
  return list;
}

class ConfigWriter {
 public:
  ConfigWriter(const ArchSpec& spec, const formats::ModelFile& file, const HubForm& form)
      : spec_(spec), file_(file), form_(form), first_(spec.blocks.front()) {}

  Result<Json> write() {
    config_["architectures"] = Json::array({form_.architecture});
    config_["model_type"] = form_.model_type;
    write_sizes();
    write_norms();
    write_attention();
    if (first_.ffn.is_moe()) write_experts();
    CANDOR_TRY(write_rope());
    write_flags();
    if (form_.write != nullptr) form_.write(spec_, config_);
    return std::move(config_);
  }

 private:
  void write_sizes() {
    const auto put = [&](std::initializer_list<const char*> names, int32_t value) {
      for (const char* name : names) {
        config_[name] = value;
        if (!form_.has_old_keys) return;
      }
    };
    config_["vocab_size"] = spec_.vocab;
    put({"hidden_size", "n_embd", "d_model"}, spec_.dim);
    put({"num_hidden_layers", "n_layer", "num_layers"}, static_cast<int32_t>(spec_.blocks.size()));
    put({"num_attention_heads", "n_head", "attention_heads"}, first_.attn.n_heads);
    put({"intermediate_size", "n_inner", "ffn_dim"}, first_.ffn.ffn_dim);
    put({"max_position_embeddings", "n_positions", "seq_length"}, spec_.max_positions);
    config_["num_key_value_heads"] = first_.attn.n_kv_heads;
    config_["head_dim"] = first_.attn.head_dim;
    config_["tie_word_embeddings"] = spec_.head.tied;
    if (form_.activation == "silu") config_["hidden_act"] = form_.activation;
    for (const char* token : {"bos", "eos", "padding"}) write_token(token);
  }

  // null where there is none: some families have defaults that lie outside a small vocabulary.
  void write_token(const std::string& token) {
    const auto id = formats::meta_int(file_, "tokenizer.ggml." + token + "_token_id");
    Json& value = config_[(token == "padding" ? "pad" : token) + "_token_id"];
    const bool is_there = id && *id && **id >= 0 && **id < spec_.vocab;
    value = is_there ? Json(**id) : Json(nullptr);
  }

  // Whether the first block has the tensors.
  void write_flags() {
    for (const HubFlag& flag : form_.flags) {
      Json& is_there = config_[flag.key];
      is_there = is_there == true;
      for (const HubTensor& row : form_.tensors) {
        if (std::ranges::find(flag.tensors, row.hub) == flag.tensors.end()) continue;
        if (file_.find(fill_name(row.name, {.block = "0", .expert = "0"})) != nullptr) is_there = true;
      }
    }
  }

  void write_norms() {
    const double epsilon = shortest_decimal(spec_.final_norm.epsilon);
    const bool is_rms = spec_.final_norm.kind == backend::NormKind::kRms;
    config_[is_rms ? "rms_norm_eps" : "layer_norm_epsilon"] = epsilon;
  }

  void write_attention() {
    if (first_.attn.softcap > 0.0f) config_["attn_logit_softcapping"] = shortest_decimal(first_.attn.softcap);
    if (spec_.head.logits.softcap > 0.0f)
      config_["final_logit_softcapping"] = shortest_decimal(spec_.head.logits.softcap);
    const auto windowed =
        std::ranges::find_if(spec_.blocks, [](const BlockSpec& b) { return b.attn.window_tokens > 0; });
    if (windowed == spec_.blocks.end()) {
      config_["sliding_window"] = nullptr;
      return;
    }
    config_["sliding_window"] = windowed->attn.window_tokens;
    config_["use_sliding_window"] = true;
    Json types = Json::array();
    for (const BlockSpec& block : spec_.blocks) {
      types.push_back(block.attn.window_tokens > 0 ? "sliding_attention" : "full_attention");
    }
    config_["layer_types"] = std::move(types);
  }

  void write_experts() {
    config_["num_local_experts"] = first_.ffn.moe.n_experts;
    config_["num_experts"] = first_.ffn.moe.n_experts;
    config_["num_experts_per_tok"] = first_.ffn.moe.n_used;
    config_["moe_intermediate_size"] = first_.ffn.ffn_dim;
    config_["norm_topk_prob"] = first_.ffn.moe.renormalise;
    if (first_.ffn.shared_dim > 0) config_["shared_expert_intermediate_size"] = first_.ffn.shared_dim;
  }

  // Blocks without a window have the base of the whole text; a windowed one may have its own.
  Result<void> write_rope() {
    const BlockSpec* full = nullptr;
    const BlockSpec* local = nullptr;
    for (const BlockSpec& block : spec_.blocks) {
      const BlockSpec*& slot = block.attn.window_tokens > 0 ? local : full;
      if (slot == nullptr && block.attn.rope.n_dims > 0) slot = &block;
    }
    if (full == nullptr) full = local;
    if (full == nullptr) return {};
    const RopeSpec& rope = full->attn.rope;
    config_["rope_theta"] = rope.base;
    if (local != nullptr && local->attn.rope.base != rope.base) config_["rope_local_base_freq"] = local->attn.rope.base;
    if (rope.n_dims != full->attn.head_dim) {
      config_["partial_rotary_factor"] = static_cast<double>(rope.n_dims) / full->attn.head_dim;
    }
    if (file_.find("rope_factors_long.weight") != nullptr) return write_long_rope(rope);
    if (rope.frequency_factors.empty()) return write_scaling(rope);
    if (std::ranges::all_of(rope.frequency_factors, [](float f) { return f == 1.0f || f == 1e30f; }))
      return {};  // the form's
    const std::optional<RopeSpec> rule = as_llama3(rope);
    if (rule && rope.scaling == RopeScaling::kNone) return write_scaling(*rule);
    return fail(ErrorKind::kUnsupported,
                "tensor 'rope_freqs.weight': its factors follow no rule that config.json can name (known: llama3)");
  }

  Result<void> write_scaling(const RopeSpec& rope) {
    if (rope.scaling == RopeScaling::kNone) return {};
    Json scaling = {{"rope_type", "linear"}, {"factor", rope.factor}};
    if (rope.scaling == RopeScaling::kYarn) {
      scaling["rope_type"] = "yarn";
      scaling["attention_factor"] = rope.attention_factor;
      scaling["beta_fast"] = rope.beta_fast;
      scaling["beta_slow"] = rope.beta_slow;
      if (!rope.is_truncated) scaling["truncate"] = false;
    }
    if (rope.scaling == RopeScaling::kLlama3) {
      scaling["rope_type"] = "llama3";
      scaling["low_freq_factor"] = rope.low_freq_factor;
      scaling["high_freq_factor"] = rope.high_freq_factor;
    }
    if (rope.original_positions > 0) scaling["original_max_position_embeddings"] = rope.original_positions;
    config_["rope_scaling"] = std::move(scaling);
    return {};
  }

  Result<void> write_long_rope(const RopeSpec& rope) {
    const Hparams hparams(file_, spec_.family);
    CANDOR_ASSIGN(const int32_t original,
                  hparams.int_or("rope.scaling.original_context_length", spec_.max_positions, {1, kMaxPositions}));
    config_["original_max_position_embeddings"] = original;
    Json scaling = {{"rope_type", "longrope"}, {"attention_factor", rope.attention_factor}};
    scaling["factor"] = static_cast<double>(spec_.max_positions) / original;
    CANDOR_ASSIGN(scaling["long_factor"], factors_of(file_, "rope_factors_long.weight", rope.n_dims));
    CANDOR_ASSIGN(scaling["short_factor"], factors_of(file_, "rope_factors_short.weight", rope.n_dims));
    config_["rope_scaling"] = std::move(scaling);
    return {};
  }

  const ArchSpec& spec_;
  const formats::ModelFile& file_;
  const HubForm& form_;
  const BlockSpec& first_;
  Json config_;
};

}  // namespace

Result<Json> write_hub_config(const ArchSpec& spec, const formats::ModelFile& file, const HubForm& form) {
  return ConfigWriter(spec, file, form).write();
}

}  // namespace candor::model
