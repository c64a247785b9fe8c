// Phi-3 and Phi-3.5: Llama with Q, K and V in one tensor, gate and up in another, rotary pairs in halves and "long
// rope" factors (Abdin et al., 2024), of a part of each head in Phi-4-mini. Which factors hold (short up to the first
// training's context, long past it) is decided by the context that is served, not by a prompt's length: an answer must
// not depend on what a sequence may still become.

#include <utility>
#include <vector>

#include "model/families/common.h"

namespace candor::model {
namespace phi3 {
namespace {

using enum TensorRole;

constexpr std::array kFused = {
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kAttnOut, "blk.*.attn_output.weight"},
    TensorName{kGateUp, "blk.*.ffn_up.weight"},
    TensorName{kDown, "blk.*.ffn_down.weight"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kFused);
constexpr std::string_view kIgnored[] = {"rope_factors_long.weight", "rope_factors_short.weight"};

constexpr std::array kHubFused = {
    HubTensor{"blk.*.attn_qkv.weight", "model.layers.*.self_attn.qkv_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.gate_up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.down_proj.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubFused);
constexpr HubForm kHub[] = {{"phi3", "Phi3ForCausalLM", "silu", kHubTensors}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "phi3");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  backend::RopeSpec rope = spec.blocks.front().attn.rope;
  rope.pairs = backend::RopePairs::kHalves;
  CANDOR_ASSIGN(const int32_t first_context,
                hparams.int_or("rope.scaling.original_context_length", spec.max_positions, {1, kMaxPositions}));
  const bool is_long = spec.max_positions > first_context;
  CANDOR_ASSIGN(std::vector<float> shorter, read_frequency_factors(file, kIgnored[1], rope.n_dims));
  rope.frequency_factors = shorter;
  if (is_long) {
    CANDOR_ASSIGN(rope.frequency_factors, read_frequency_factors(file, kIgnored[0], rope.n_dims));
    if (!shorter.empty()) spec.short_context = {first_context, std::move(shorter)};
  }
  CANDOR_ASSIGN(rope.attention_factor, hparams.positive_or("rope.scaling.attn_factor", 1.0));
  for (BlockSpec& block : spec.blocks) block.attn.rope = rope;
  return spec;
}

}  // namespace
}  // namespace phi3

Family phi3_family() {
  using namespace phi3;
  return {"phi3", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
