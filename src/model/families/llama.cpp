// Llama 1 to 3, and the many models that kept their shape (Mistral 7B, TinyLlama, Yi, SmolLM): pre-norm blocks of RMS
// norms, grouped-query attention with interleaved rotary pairs, and a SiLU-gated feed-forward. Touvron et al., 2023.

#include <array>

#include "model/families/families.h"
#include "model/hparams.h"

namespace candor::model {
namespace {

using enum TensorRole;
constexpr Presence kOptional = Presence::kOptional;

constexpr TensorName kTensors[] = {
    {kEmbedding, "token_embd.weight"},
    {kFinalNorm, "output_norm.weight"},
    {kHead, "output.weight", kOptional},
    {kAttnNorm, "blk.*.attn_norm.weight"},
    {kQ, "blk.*.attn_q.weight"},
    {kQBias, "blk.*.attn_q.bias", kOptional},
    {kK, "blk.*.attn_k.weight"},
    {kKBias, "blk.*.attn_k.bias", kOptional},
    {kV, "blk.*.attn_v.weight"},
    {kVBias, "blk.*.attn_v.bias", kOptional},
    {kAttnOut, "blk.*.attn_output.weight"},
    {kAttnOutBias, "blk.*.attn_output.bias", kOptional},
    {kFfnNorm, "blk.*.ffn_norm.weight"},
    {kGate, "blk.*.ffn_gate.weight"},
    {kGateBias, "blk.*.ffn_gate.bias", kOptional},
    {kUp, "blk.*.ffn_up.weight"},
    {kUpBias, "blk.*.ffn_up.bias", kOptional},
    {kDown, "blk.*.ffn_down.weight"},
    {kDownBias, "blk.*.ffn_down.bias", kOptional},
};

// rope_freqs is part of the RopeSpec; the other was written by early converters and can be computed.
constexpr std::string_view kIgnored[] = {"rope_freqs.weight", "blk.*.attn_rot_embd"};

Expected<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "llama");
  CANDOR_TRY(
      hparams.refuse_unless_zero({"expert_count", "attention.clamp_kqv", "attention.max_alibi_bias",
                                  "attn_logit_softcapping", "final_logit_softcapping", "use_parallel_residual"}));
  ArchSpec spec;
  spec.family = "llama";
  CANDOR_ASSIGN(spec.dim, hparams.require_int("embedding_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(spec.vocab, read_vocab(hparams));
  CANDOR_ASSIGN(spec.max_positions, hparams.require_int("context_length", {1, kMaxPositions}));
  CANDOR_ASSIGN(const int32_t n_layers, hparams.require_int("block_count", {1, kMaxLayers}));
  CANDOR_ASSIGN(const double epsilon, hparams.require_positive("attention.layer_norm_rms_epsilon"));
  CANDOR_ASSIGN(const auto ffn_dims, hparams.per_layer("feed_forward_length", n_layers, {1, kMaxWidth}));

  BlockSpec block;
  block.norm = {backend::NormKind::kRms, static_cast<float>(epsilon)};
  CANDOR_ASSIGN(block.attn, read_attention(hparams, spec.dim, n_layers));
  for (const int32_t ffn_dim : ffn_dims) {
    block.ffn = {ffn_dim, backend::GateKind::kSilu};
    spec.blocks.push_back(block);
  }
  spec.final_norm = block.norm;
  spec.head.tied = file.find("output.weight") == nullptr;
  return spec;
}

}  // namespace

Family llama_family() {
  return {"llama", read, kTensors, kIgnored};
}

}  // namespace candor::model
