#include "model/arch_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "backend/op_specs.h"
#include "backend/state_specs.h"

namespace candor::model {
namespace {

std::string norm_text(const backend::NormSpec& norm) {
  return fmt::format("{} epsilon {}", norm.kind == backend::NormKind::kRms ? "rms" : "layer", norm.epsilon);
}

std::string_view scaling_name(backend::RopeScaling scaling) {
  switch (scaling) {
    case backend::RopeScaling::kNone:
      return "none";
    case backend::RopeScaling::kLinear:
      return "linear";
    case backend::RopeScaling::kYarn:
      return "yarn";
    case backend::RopeScaling::kLlama3:
      return "llama3";
  }
  return "";
}

std::string scaling_text(const backend::RopeSpec& rope) {
  std::string text = fmt::format("scaling {}", scaling_name(rope.scaling));
  if (rope.scaling != backend::RopeScaling::kNone) text += fmt::format(" factor {}", rope.factor);
  if (rope.original_positions != 0) text += fmt::format(" from {} positions", rope.original_positions);
  if (rope.scaling == backend::RopeScaling::kYarn)
    text += fmt::format(" beta {} {}{}", rope.beta_fast, rope.beta_slow, rope.is_truncated ? "" : " not truncated");
  if (rope.attention_factor != 1.0) text += fmt::format(" attention factor {}", rope.attention_factor);
  if (rope.scaling == backend::RopeScaling::kLlama3) {
    text += fmt::format(" frequency factors {} {}", rope.low_freq_factor, rope.high_freq_factor);
  }
  for (size_t i = 0; i < rope.axes.size(); ++i) text += fmt::format("{}{}", i == 0 ? " axes " : "", rope.axes[i]);
  if (!rope.own_frequencies.empty()) text += fmt::format(" {} frequencies of its own", rope.own_frequencies.size());
  if (!rope.frequency_factors.empty()) text += fmt::format(" with {} factors", rope.frequency_factors.size());
  return text;
}

std::string_view wiring_text(Wiring wiring) {
  if (wiring == Wiring::kPreNorm) return "before";
  if (wiring == Wiring::kParallel) return "before both in parallel";
  if (wiring == Wiring::kParallelTwoNorms) return "before each in parallel";
  if (wiring == Wiring::kStreamNorm) return "over the stream";
  return wiring == Wiring::kPostNorm ? "after" : "before and after";
}

std::string_view act_text(backend::GateKind kind) {
  constexpr std::string_view kNames[] = {"silu",         "gelu",         "gelu (erf)", "relu",
                                         "relu squared", "clamped silu", "sigmoid",    "product"};
  static_assert(std::size(kNames) == backend::kGateKinds);
  return kNames[static_cast<size_t>(kind)];
}

std::string experts_text(const backend::MoeSpec& moe) {
  const bool is_softmax = moe.share == backend::ExpertShare::kSoftmax;
  std::string text = fmt::format(", {} of {} experts", moe.n_used, moe.n_experts);
  if (moe.n_groups > 1) text += fmt::format(" out of {} of {} groups", moe.n_groups_used, moe.n_groups);
  text += is_softmax ? fmt::format(", softmax over {}", moe.renormalise ? "the chosen" : "all")
                     : fmt::format(", sigmoid{}", moe.renormalise ? " over the sum of the chosen" : "");
  if (moe.has_choice_bias) text += ", chosen with a bias";
  if (moe.has_expert_scales) text += ", times a number of each expert";
  if (moe.weighs_inputs) text += ", weighed before they compute";
  if (moe.scale != 1.0f) text += fmt::format(", times {}", moe.scale);
  return text;
}

std::string latent_text(const BlockSpec& block) {
  const backend::AttnSpec& attn = block.attn;
  std::string text = fmt::format(
      "  attention: {} heads of {} + {} over one latent of {} and its rotated {}, values of {}", attn.n_heads,
      block.latent.head_dim, block.rotated_dim(), attn.latent_dim, block.rotated_dim(), block.latent.value_dim);
  if (block.latent.query_rank > 0) text += fmt::format(", queries from {}", block.latent.query_rank);
  return text + fmt::format(", scale {}", attn.scale);
}

std::string ffn_text(const FfnSpec& ffn) {
  std::string text =
      fmt::format("  feed-forward: {} wide, {}{}", ffn.ffn_dim, ffn.is_gated ? "gated " : "", act_text(ffn.gate));
  if (ffn.is_moe()) {
    text += experts_text(ffn.moe);
  }
  if (ffn.shared_dim != 0) {
    text += fmt::format(", a shared expert {} wide{}", ffn.shared_dim, ffn.is_shared_gated ? " under a sigmoid" : "");
    if (ffn.has_parted_norms) text += ", each behind norms of its own";
  }
  return text + '\n';
}

std::string delta_text(const BlockSpec& block) {
  const backend::DeltaSpec& delta = block.delta;
  std::string text = fmt::format(
      "  recurrent: gated delta rule{}, {} heads {} x {}, {} key heads {}, convolution over {} rows",
      delta.has_channel_gates ? " by channel" : "", delta.n_v_heads, delta.k_dim, delta.v_dim, delta.n_k_heads,
      delta.key_heads == backend::KeyHeads::kTiled ? "in turn" : "in groups", delta.n_taps);
  if (delta.share_scale != 1.0f) text += fmt::format(", corrections up to {}", delta.share_scale);
  if (block.delta_epsilon != 0.0f) text += fmt::format(", normalised with epsilon {}", block.delta_epsilon);
  return text + '\n';
}

std::string ssm_text(const BlockSpec& block) {
  const backend::SsmSpec& ssm = block.ssm;
  const bool has_limits = ssm.least_step > 0.0f || std::isfinite(ssm.most_step);
  return fmt::format("  recurrent: state space, {} heads {} x {} in {} groups, convolution over {} rows, {}{}\n",
                     ssm.n_heads, ssm.state_dim, ssm.head_dim, ssm.n_groups, ssm.n_taps,
                     block.has_ssm_norm ? "gated, then normalised by group" : "gated",
                     has_limits ? fmt::format(", steps within {} and {}", ssm.least_step, ssm.most_step) : "");
}

std::string attention_text(const BlockSpec& block) {
  const backend::AttnSpec& attn = block.attn;
  std::string text;
  if (block.shares_kv()) text += fmt::format("  keys and values: those of block {}\n", block.kv_block);
  text += block.has_latent() ? latent_text(block)
                             : fmt::format("  attention: {} heads, {} K/V heads, width {}, scale {}", attn.n_heads,
                                           attn.n_kv_heads, attn.head_dim, attn.scale);
  if (attn.window_tokens != 0)
    text += fmt::format(", window {} tokens{}", attn.window_tokens, attn.is_two_sided ? " to both sides" : "");
  if (attn.chunk_tokens != 0) text += fmt::format(", chunks of {} tokens", attn.chunk_tokens);
  if (!attn.sees_groups) text += ", images seen in order";
  if (attn.softcap != 0.0f) text += fmt::format(", capped at {}", attn.softcap);
  if (attn.temper.gain != 0.0f)
    text += fmt::format(", queries grow by {} ln of {} positions", attn.temper.gain, attn.temper.step);
  if (attn.max_alibi_bias != 0.0f) text += fmt::format(", alibi up to 2^-{}", attn.max_alibi_bias);
  if (attn.has_sinks) text += ", with sinks";
  if (attn.bias_reach > 0) text += ", biased by distance";
  if (block.has_head_gate) text += ", gated by a sigmoid";
  if (block.qk_norm == QkNorm::kHeads) text += ", q and k normalised by head";
  if (block.qk_norm == QkNorm::kOwnHeads) text += ", q and k normalised by head, each with gains of its own";
  if (block.qk_norm == QkNorm::kWhole) text += ", q and k normalised whole";
  if (block.norms_after_rope) text += " behind their rotation";
  if (block.values_are_keys) text += ", values projected as keys";
  if (block.has_value_norm) text += ", v normalised by head";
  text += '\n';
  if (attn.rope.n_dims != 0)
    text += fmt::format("  rotary: {} dimensions in {}, base {}, {}\n", attn.rope.n_dims,
                        attn.rope.pairs == backend::RopePairs::kInterleaved ? "interleaved pairs" : "halves",
                        attn.rope.base, scaling_text(attn.rope));
  return text;
}

std::string bounds_text(const BlockBounds& bounds) {
  std::string text = "  bounds of matrices:";
  for (const backend::MatrixBounds& one :
       {bounds.q, bounds.k, bounds.v, bounds.attn_out, bounds.gate, bounds.up, bounds.down}) {
    text += fmt::format(" [{} {} {} {}]", one.in.low, one.in.high, one.out.low, one.out.high);
  }
  return text + '\n';
}

std::string block_text(const BlockSpec& block) {
  std::string text = fmt::format("  norm: {} {}\n", wiring_text(block.wiring), norm_text(block.norm));
  if (block.has_attention) text += attention_text(block);
  if (block.has_delta()) text += delta_text(block);
  if (block.has_ssm()) text += ssm_text(block);
  if (block.has_gated_conv())
    text += fmt::format("  recurrent: gated convolution over {} rows\n", block.gated_conv.n_taps);
  if (block.has_ffn()) text += ffn_text(block.ffn);
  if (block.layer_dim != 0) text += fmt::format("  input of its own: {} wide\n", block.layer_dim);
  if (block.bounds.exist()) text += bounds_text(block.bounds);
  if (block.is_attn_bare) text += "  attention reads the stream without a norm\n";
  if (block.has_out_scale) text += "  output: times a number\n";
  if (block.residual_scale != 1.0f) text += fmt::format("  residual scale: {}\n", block.residual_scale);
  return text;
}

}  // namespace

std::string to_text(const ArchSpec& spec) {
  std::string text =
      fmt::format("family: {}\nembedding: {} wide, scale {}\nvocabulary: {} tokens\ncontext: {} positions\n",
                  spec.family, spec.dim, spec.embed.scale, spec.vocab, spec.max_positions);
  if (spec.short_context.positions != 0) {
    text += spec.is_short
                ? fmt::format("rotary factors: those of contexts up to {} positions\n", spec.short_context.positions)
                : fmt::format("rotary factors: those of contexts above {0} positions; -c {0} takes the others\n",
                              spec.short_context.positions);
  }
  if (spec.n_deep > 0) text += fmt::format("images: also behind the first {} blocks\n", spec.n_deep);
  if (spec.embed.has_positions) text += "positions: a table\n";
  if (spec.embed.n_types != 0) text += fmt::format("types: a table of {}\n", spec.embed.n_types);
  if (spec.is_bidirectional) text += "reads a text as a whole: every token sees all others\n";
  if (spec.embed.has_norm) text += "embedding norm\n";
  if (spec.embed.layer_image_token != kNoToken)
    text += fmt::format("inputs by block of images: those of token {}\n", spec.embed.layer_image_token);
  for (size_t first = 0; first < spec.blocks.size();) {
    size_t end = first + 1;
    while (end < spec.blocks.size() && spec.blocks[end] == spec.blocks[first]) ++end;
    text += first + 1 == end ? fmt::format("block {}:\n", first) : fmt::format("blocks {} to {}:\n", first, end - 1);
    text += block_text(spec.blocks[first]);
    first = end;
  }
  if (spec.n_prediction_blocks != 0) {
    text += fmt::format("multi-token prediction: {} blocks from block {} on, of which the first can draft\n",
                        spec.n_prediction_blocks, spec.blocks.size());
  }
  if (spec.has_final_norm) text += fmt::format("final norm: {}\n", norm_text(spec.final_norm));
  if (spec.head.is_of_masked) text += "masked words: guessed behind a layer, GELU and a LayerNorm\n";
  if (spec.head.is_absent) return text + "head: none, hidden states are its output\n";
  text +=
      fmt::format("head: {}, scale {}", spec.head.tied ? "tied to the embedding" : "its own", spec.head.logits.scale);
  if (spec.head.logits.softcap != 0.0f) text += fmt::format(", capped at {}", spec.head.logits.softcap);
  text += '\n';
  return text;
}

}  // namespace candor::model
