#include "model/gguf_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

namespace candor::model {
namespace {

using Settings = std::vector<formats::AssumedSetting>;

// Adds what holds where the file lacks the key.
class Missing {
 public:
  Missing(const formats::ModelFile& file, std::string_view prefix, Settings& settings)
      : file_(file), prefix_(prefix), settings_(settings) {}

  template <class Value>
  void note(std::string_view suffix, const Value& value) {
    std::string key = fmt::format("{}.{}", prefix_, suffix);
    if (file_.meta(key) == nullptr) settings_.push_back({std::move(key), fmt::format("{}", value)});
  }

 private:
  const formats::ModelFile& file_;
  std::string_view prefix_;
  Settings& settings_;
};

void note_attention(const ArchSpec& spec, const BlockSpec& block, Missing& missing) {
  const backend::AttnSpec& attn = block.attn;
  missing.note("attention.head_count_kv", attn.n_kv_heads);
  if (!block.has_latent() && attn.head_dim * attn.n_heads != spec.dim) missing.note("attention.key_length", attn.head_dim);
  if (attn.rope.n_dims > 0) {
    missing.note("rope.freq_base", attn.rope.base);
    missing.note("rope.dimension_count", attn.rope.n_dims);
  }
  if (attn.softcap != 0.0f) missing.note("attn_logit_softcapping", attn.softcap);
  if (attn.window_tokens > 0) missing.note("attention.sliding_window", attn.window_tokens);
  if (attn.chunk_tokens > 0) missing.note("attention.chunk_size", attn.chunk_tokens);
  if (attn.max_alibi_bias != 0.0f) missing.note("attention.max_alibi_bias", attn.max_alibi_bias);
}

void note_experts(const backend::MoeSpec& moe, Missing& missing) {
  missing.note("expert_weights_norm", moe.renormalise);
  missing.note("expert_weights_scale", moe.scale);
  missing.note("expert_gating_func", moe.share == backend::ExpertShare::kSigmoid ? "sigmoid" : "softmax");
}

}  // namespace

Settings assumed_of_gguf(const formats::ModelFile& file, const ArchSpec& spec) {
  Settings settings;
  if (!file.info().format.starts_with("GGUF")) return settings;
  Missing missing(file, spec.family, settings);
  const auto attends = std::ranges::find_if(spec.blocks, &BlockSpec::has_attention);
  if (attends != spec.blocks.end()) note_attention(spec, *attends, missing);
  const auto is_windowed = [](const BlockSpec& block) { return block.attn.window_tokens > 0; };
  const bool has_some = std::ranges::any_of(spec.blocks, is_windowed) && !std::ranges::all_of(spec.blocks, is_windowed);
  if (has_some) {
    std::string blocks;
    for (const BlockSpec& block : spec.blocks) blocks += is_windowed(block) ? 'w' : 'f';
    missing.note("attention.sliding_window_pattern", blocks);
  }
  if (spec.head.logits.softcap != 0.0f) missing.note("final_logit_softcapping", spec.head.logits.softcap);
  const auto sparse = std::ranges::find_if(spec.blocks, [](const BlockSpec& block) { return block.ffn.is_moe(); });
  if (sparse != spec.blocks.end()) note_experts(sparse->ffn.moe, missing);
  return settings;
}

Settings suggested_of_gguf(const formats::ModelFile& file) {
  constexpr std::string_view kStem = "general.sampling.";
  Settings settings;
  for (const formats::MetaEntry& entry : file.metadata()) {
    if (!entry.key.starts_with(kStem)) continue;
    std::string value = std::visit(
        [](const auto& one) {
          using Value = std::decay_t<decltype(one)>;
          if constexpr (std::is_same_v<Value, formats::MetaArray>) {
            return std::string("a list");
          } else {
            return fmt::format("{}", one);
          }
        },
        entry.value);
    settings.push_back({std::string(entry.key.substr(kStem.size())), std::move(value)});
  }
  return settings;
}

}  // namespace candor::model
