#include "model/block.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "backend/op_specs.h"

namespace candor::model {
namespace {

using backend::Activation;
using backend::LinearTerm;
using backend::NormSpec;
using backend::Ops;
namespace op = backend::op;

LinearTerm term(const Projection& projection, Activation dst) {
  return {projection.weight.get(), projection.bias.get(), dst};
}

// Where attention reads and writes.
struct MixerLayer {
  Activation src;
  Activation dst;
  int32_t layer;
};

// The same of whatever mixes a block's tokens.
struct Mixing {
  Activation src;
  Activation dst;
  MemoryLayers memory;
};

// Projections of src, which may keep within bounds what they read and give. A single one's input may change.
struct Bounded {
  LinearTerm term{};
  const backend::MatrixBounds* bounds = nullptr;
};

void keep_within(Ops& ops, const backend::Bounds& bounds, Activation dst, Activation src) {
  if (bounds.exist()) ops.run(op::Clamp{dst, src, bounds.low, bounds.high});
}

void project(Ops& ops, std::span<const Bounded> all, Activation src, Activation between) {
  for (const Bounded& one : all) {
    const Activation kept = !one.bounds->in.exist() ? src : all.size() == 1 ? src : between;
    keep_within(ops, one.bounds->in, kept, src);
    ops.run(op::Linear{std::span(&one.term, 1), kept});
    keep_within(ops, one.bounds->out, one.term.dst, one.term.dst);
  }
}

// What a sub-layer reads: x normalised into h, or x itself.
Activation read_stream(Ops& ops, const BlockSpec& spec, const Norm& norm, const BlockActivations& act) {
  if (reads_bare_stream(spec.wiring)) return act.x;
  ops.run(op::Norm{act.h, act.x, norm.weights(), spec.norm});
  return act.h;
}

// Adds a sub-layer's output to the stream.
void write_stream(Ops& ops, const BlockSpec& spec, const Norm& norm, const BlockActivations& act, Activation output) {
  const bool is_normed = spec.wiring == Wiring::kPostNorm || spec.wiring == Wiring::kSandwich;
  if (is_normed) ops.run(op::Norm{output, output, norm.weights(), spec.norm});
  ops.run(op::Add{act.x, output, spec.residual_scale});
  if (spec.wiring == Wiring::kStreamNorm) ops.run(op::Norm{act.x, act.x, norm.weights(), spec.norm});
}

void norm_heads(Ops& ops, QkNorm kind, Activation x, int32_t head_dim, const Norm& norm, const NormSpec& spec) {
  if (kind == QkNorm::kHeads || kind == QkNorm::kOwnHeads) x = {x.slot, x.n_rows * (x.n_cols / head_dim), head_dim};
  if (kind != QkNorm::kNone) ops.run(op::Norm{x, x, norm.weights(), spec});
}

// Of q or k.
void norm_and_rotate(Ops& ops, const BlockSpec& spec, const Norm& norm, Activation x, int32_t n_heads) {
  const backend::AttnSpec& attn = spec.attn;
  if (!spec.norms_after_rope) norm_heads(ops, spec.qk_norm, x, attn.head_dim, norm, spec.norm);
  if (attn.rope.n_dims > 0) ops.run(op::Rope{x, n_heads, attn.head_dim, &attn.rope});
  if (spec.norms_after_rope) norm_heads(ops, spec.qk_norm, x, attn.head_dim, norm, spec.norm);
}

// q, k and v out of src; of a block that reads another one's keys and values q alone.
void project_heads(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                   Activation src) {
  const std::array terms{term(weights.q, spec.joins_gate() ? act.joined : act.q), term(weights.k, act.k),
                         term(weights.v, act.v), term(weights.attn_gate, act.head_gate)};
  const size_t n_terms = spec.is_gate_apart ? 4 : spec.shares_kv() ? 1 : spec.values_are_keys ? 2 : 3;
  if (spec.bounds.exist()) {
    project(
        ops,
        std::array<Bounded, 3>{{{terms[0], &spec.bounds.q}, {terms[1], &spec.bounds.k}, {terms[2], &spec.bounds.v}}},
        src, act.bounded);
  } else {
    ops.run(op::Linear{std::span(terms).first(n_terms), src});
  }
  if (spec.joins_gate()) ops.run(op::Unzip{act.q, act.head_gate, act.joined, spec.attn.head_dim});
  if (spec.values_are_keys && !spec.shares_kv()) ops.run(op::Columns{act.v, act.k, 0});
}

// The output of attention, in dst; src may be dst.
void attend_to(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
               MixerLayer mixer) {
  const auto [src, dst, layer] = mixer;
  const backend::AttnSpec& attn = spec.attn;
  project_heads(ops, spec, weights, act, src);
  if (spec.has_value_norm && !spec.shares_kv()) norm_heads(ops, QkNorm::kHeads, act.v, attn.head_dim, {}, spec.norm);
  norm_and_rotate(ops, spec, weights.q_norm, act.q, attn.n_heads);
  if (!spec.shares_kv()) norm_and_rotate(ops, spec, weights.k_norm, act.k, attn.n_kv_heads);
  if (attn.temper.gain != 0.0f) ops.run(op::Temper{act.q, attn.temper});
  ops.run(
      op::Attend{act.heads, {act.q, act.k, act.v, layer, weights.sinks.get(), weights.distance_biases.get()}, &attn});
  if (spec.has_head_gate) ops.run(op::Gate{act.heads, act.head_gate, act.heads, backend::GateKind::kSigmoid});
  project(ops, std::array{Bounded{term(weights.attn_out, dst), &spec.bounds.attn_out}}, act.heads, act.heads);
}

// q, rotated and as wide as the keys.
void query_latent(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                  Activation src) {
  const LatentActivations& latent = act.latent;
  const backend::AttnSpec& attn = spec.attn;
  if (spec.latent.query_rank > 0) {
    ops.run(op::Linear{std::array{term(weights.query_down, latent.low)}, src});
    ops.run(op::Norm{latent.low, latent.low, weights.query_norm.weights(), {spec.norm.kind, spec.latent.epsilon}});
    src = latent.low;
  }
  ops.run(op::Linear{std::array{term(weights.q, latent.queries)}, src});
  ops.run(op::Unzip{latent.plain, latent.rotated, latent.queries, spec.latent.head_dim});
  ops.run(op::LinearHeads{latent.wide, latent.plain, weights.latent_key.weight.get(), attn.n_heads});
  ops.run(op::Rope{latent.rotated, attn.n_heads, spec.rotated_dim(), &attn.rope});
  ops.run(op::Zip{act.q, latent.wide, latent.rotated, attn.latent_dim});
}

// The output of latent attention, in dst; src may be dst. Queries and outputs are brought to the latent's width and
// back, so that keys and values are never projected from it.
void attend_latent_to(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                      MixerLayer mixer) {
  const auto [src, dst, layer] = mixer;
  const LatentActivations& latent = act.latent;
  const backend::AttnSpec& attn = spec.attn;
  ops.run(op::Linear{std::array{term(weights.latent, latent.joined)}, src});
  ops.run(op::Unzip{latent.latent, latent.key, latent.joined, attn.latent_dim});
  ops.run(op::Norm{latent.latent, latent.latent, weights.latent_norm.weights(), {spec.norm.kind, spec.latent.epsilon}});
  ops.run(op::Rope{latent.key, 1, spec.rotated_dim(), &attn.rope});
  ops.run(op::Zip{act.k, latent.latent, latent.key, attn.latent_dim});
  query_latent(ops, spec, weights, act, src);
  if (attn.temper.gain != 0.0f) ops.run(op::Temper{act.q, attn.temper});
  ops.run(op::Attend{latent.wide, {act.q, act.k, act.v, layer}, &attn});
  ops.run(op::LinearHeads{act.heads, latent.wide, weights.latent_value.weight.get(), attn.n_heads});
  ops.run(op::Linear{std::array{term(weights.attn_out, dst)}, act.heads});
}

void project_delta(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                   Activation src) {
  const LinearTerm qkv = term(weights.delta_qkv, act.joined);
  const LinearTerm gate = term(weights.delta_gate, act.head_gate);
  if (weights.delta_beta_alpha.weight == nullptr) {
    ops.run(op::Linear{std::array{qkv, gate, term(weights.delta_alpha, act.alpha), term(weights.delta_beta, act.beta)},
                       src});
    return;
  }
  ops.run(op::Linear{std::array{qkv, gate, term(weights.delta_beta_alpha, act.beta_alpha)}, src});
  ops.run(op::Unzip{act.beta, act.alpha, act.beta_alpha, spec.delta.n_v_heads / spec.delta.n_k_heads});
}

// The same where q, k and v are projected each by itself. Where channels have gates of their own, gates come from
// vectors as wide as a head.
void project_parts(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                   Activation src) {
  const StateActivations& state = act.state;
  const bool has_ranks = spec.delta.has_channel_gates;
  ops.run(op::Linear{
      std::array{term(weights.delta_q, act.q), term(weights.delta_k, act.k), term(weights.delta_v, act.v),
                 has_ranks ? term(weights.delta_alpha_down, state.step) : term(weights.delta_alpha, act.alpha),
                 has_ranks ? term(weights.delta_gate_down, state.gate) : term(weights.delta_gate, act.head_gate),
                 term(weights.delta_beta, act.beta)},
      src});
  if (has_ranks) {
    ops.run(op::Linear{std::array{term(weights.delta_alpha, act.alpha)}, state.step});
    ops.run(op::Linear{std::array{term(weights.delta_gate, act.head_gate)}, state.gate});
  }
  ops.run(op::Zip{state.before, act.q, act.k, act.q.n_cols});
  ops.run(op::Zip{act.joined, state.before, act.v, state.before.n_cols});
}

void convolve_delta(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                    int32_t layer) {
  if (!spec.has_delta_parts) {
    return ops.run(op::CausalConv{{act.joined, weights.delta_taps.get(), layer}, spec.delta.conv()});
  }
  const int32_t firsts[] = {0, spec.delta.k_width(), 2 * spec.delta.k_width()};
  for (size_t part = 0; part < weights.delta_part_taps.size(); ++part) {
    ops.run(op::CausalConv{{act.joined, weights.delta_part_taps[part].get(), layer, nullptr, firsts[part]},
                           spec.delta.conv()});
  }
}

// The output of a delta rule, in dst; src may be dst.
void recur_to(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
              MixerLayer mixer) {
  const auto [src, dst, layer] = mixer;
  if (spec.has_delta_parts) {
    project_parts(ops, spec, weights, act, src);
  } else {
    project_delta(ops, spec, weights, act, src);
  }
  convolve_delta(ops, spec, weights, act, layer);
  ops.run(op::DeltaRule{act.heads,
                        {act.joined, act.alpha, act.beta, weights.delta_rate.get(), weights.delta_bias.get(), layer},
                        spec.delta});
  const float epsilon = spec.delta_epsilon > 0.0f ? spec.delta_epsilon : spec.norm.epsilon;
  norm_heads(ops, QkNorm::kHeads, act.heads, spec.delta.v_dim, weights.delta_norm, {spec.norm.kind, epsilon});
  ops.run(op::Gate{act.heads, act.head_gate, act.heads, spec.delta_gate});
  ops.run(op::Linear{std::array{term(weights.delta_out, dst)}, act.heads});
}

// The output of a gated convolution, in dst; src may be dst.
void convolve_to(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                 MixerLayer mixer) {
  const auto [src, dst, layer] = mixer;
  const StateActivations& state = act.state;
  ops.run(op::Linear{std::array{term(weights.conv_b, state.before), term(weights.conv_c, state.gate),
                                term(weights.conv_x, state.channels)},
                     src});
  ops.run(op::Gate{state.channels, state.before, state.channels, backend::GateKind::kProduct});
  ops.run(op::CausalConv{{state.channels, weights.conv_taps.get(), layer}, spec.gated_conv});
  ops.run(op::Gate{state.channels, state.gate, state.channels, backend::GateKind::kProduct});
  ops.run(op::Linear{std::array{term(weights.conv_out, dst)}, state.channels});
}

// The output of a state space, in dst; src may be dst.
void scan_to(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
             MixerLayer mixer) {
  const auto [src, dst, layer] = mixer;
  const StateActivations& state = act.state;
  ops.run(op::Linear{std::array{term(weights.ssm_gate, state.gate), term(weights.ssm_channels, state.channels),
                                term(weights.ssm_step, state.step)},
                     src});
  ops.run(
      op::CausalConv{{state.channels, weights.ssm_taps.get(), layer, weights.ssm_taps_bias.get()}, spec.ssm.conv()});
  ops.run(op::SsmScan{
      state.out,
      {state.channels, state.step, weights.ssm_rate.get(), weights.ssm_step_bias.get(), weights.ssm_skip.get(), layer},
      spec.ssm});
  ops.run(op::Gate{state.out, state.gate, state.out, backend::GateKind::kSilu});
  if (spec.has_ssm_norm) {
    norm_heads(ops, QkNorm::kHeads, state.out, spec.ssm.width() / spec.ssm.n_groups, weights.ssm_norm, spec.norm);
  }
  ops.run(op::Linear{std::array{term(weights.ssm_out, dst)}, state.out});
}

// The output of the layer that keeps a state.
void keep_state_to(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                   MixerLayer mixer) {
  if (spec.has_delta()) return recur_to(ops, spec, weights, act, mixer);
  if (spec.has_ssm()) return scan_to(ops, spec, weights, act, mixer);
  convolve_to(ops, spec, weights, act, mixer);
}

// Of a block that has one of them. REQUIRES: spec.has_mixer().
void mix_tokens(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                const Mixing& mixing) {
  const auto [src, dst, memory] = mixing;
  if (!spec.has_attention) return keep_state_to(ops, spec, weights, act, {src, dst, memory.state});
  if (spec.has_latent()) return attend_latent_to(ops, spec, weights, act, {src, dst, memory.kv});
  attend_to(ops, spec, weights, act, {src, dst, memory.kv});
}

// The gated rows of the expert that every row goes to, in act.shared_up: before the others', so that ranks can put all
// of them together at once.
void open_shared(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                 Activation src) {
  const FfnSpec& ffn = spec.ffn;
  const LinearTerm gate = term(weights.shared_gate, act.shared_gate);
  const LinearTerm up = term(weights.shared_up, act.shared_up);
  if (!ffn.is_gated) {
    ops.run(op::Linear{std::array{up}, src});
    return ops.run(op::Activate{act.shared_up, ffn.gate});
  }
  if (ffn.is_shared_gated) {
    ops.run(op::Linear{std::array{gate, up, term(weights.shared_router, act.shared_score)}, src});
  } else {
    ops.run(op::Linear{std::array{gate, up}, src});
  }
  ops.run(op::Gate{act.shared_up, act.shared_gate, act.shared_up, ffn.gate});
}

// Its output, added to act.mixed; where the two have norms of their own, behind these.
void add_shared(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act) {
  const FfnSpec& ffn = spec.ffn;
  const Activation output{act.expert_out.slot, act.mixed.n_rows, act.mixed.n_cols};
  ops.run(op::Linear{std::array{term(weights.shared_down, output)}, act.shared_up});
  if (ffn.has_parted_norms) {
    ops.run(op::Norm{act.mixed, act.mixed, weights.expert_post_norm.weights(), spec.norm});
    ops.run(op::Norm{output, output, weights.shared_post_norm.weights(), spec.norm});
  }
  if (ffn.is_gated && ffn.is_shared_gated) return ops.run(op::AddGated{act.mixed, output, act.shared_score});
  ops.run(op::Add{act.mixed, output, 1.0f});
}

// act.mixed, by the router's act.scores.
void run_experts(Ops& ops, const FfnSpec& ffn, const BlockWeights& weights, const BlockActivations& act,
                 Activation src) {
  const auto by_visit = [&](Activation x) {
    return Activation{x.slot, x.n_rows * ffn.moe.n_used, x.n_cols / ffn.moe.n_used};
  };
  ops.run(op::Moe{act.mixed,
                  src,
                  {.experts = weights.expert_views,
                   .spec = ffn.moe,
                   .kind = ffn.gate,
                   .scores = act.scores,
                   .gate = by_visit(act.gate),
                   .up = by_visit(act.up),
                   .outputs = by_visit(act.expert_out),
                   .choice_bias = weights.choice_bias.get(),
                   .expert_scales = weights.expert_scales.get(),
                   .bias = weights.mix_bias.get()}});
}

Activation mix_experts(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                       Activation src) {
  ops.run(op::Linear{std::array{term(weights.router, act.scores)}, src});
  if (spec.ffn.shared_dim > 0) open_shared(ops, spec, weights, act, src);
  run_experts(ops, spec.ffn, weights, act, src);
  if (spec.ffn.shared_dim > 0) add_shared(ops, spec, weights, act);
  return act.mixed;
}

// Out of the stream itself (FfnSpec::has_parted_norms).
Activation mix_parted(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act) {
  ops.run(op::Norm{act.h, act.x, weights.ffn_norm.weights(), spec.norm});
  open_shared(ops, spec, weights, act, act.h);
  ops.run(op::Norm{act.h, act.x, weights.router_norm.weights(), spec.norm});
  ops.run(op::Scale{act.h, 1.0f / std::sqrt(static_cast<float>(act.h.n_cols)), nullptr});
  ops.run(op::Linear{std::array{term(weights.router, act.scores)}, act.h});
  ops.run(op::Norm{act.h, act.x, weights.expert_norm.weights(), spec.norm});
  run_experts(ops, spec.ffn, weights, act, act.h);
  add_shared(ops, spec, weights, act);
  return act.mixed;
}

Activation dense(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                 Activation src) {
  const FfnSpec& ffn = spec.ffn;
  const std::array terms{term(weights.gate, act.gate), term(weights.up, act.up)};
  if (ffn.is_gated && spec.bounds.exist()) {
    project(ops, std::array<Bounded, 2>{{{terms[0], &spec.bounds.gate}, {terms[1], &spec.bounds.up}}}, src,
            act.bounded);
    ops.run(op::Gate{act.up, act.gate, act.up, ffn.gate});
  } else if (ffn.is_gated) {
    ops.run(op::Linear{terms, src});
    ops.run(op::Gate{act.up, act.gate, act.up, ffn.gate});
  } else {
    ops.run(op::Linear{std::array{term(weights.up, act.up)}, src});
    ops.run(op::Activate{act.up, ffn.gate});
  }
  project(ops, std::array{Bounded{term(weights.down, act.h), &spec.bounds.down}}, act.up, act.up);
  return act.h;
}

Activation feed_forward(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                        Activation src) {
  return spec.ffn.is_moe() ? mix_experts(ops, spec, weights, act, src) : dense(ops, spec, weights, act, src);
}

Activation serial_feed_forward(Ops& ops, const BlockSpec& spec, const BlockWeights& weights,
                               const BlockActivations& act) {
  if (spec.ffn.has_parted_norms) return mix_parted(ops, spec, weights, act);
  return feed_forward(ops, spec, weights, act, read_stream(ops, spec, weights.ffn_norm, act));
}

// What the tokens have for this block, under a gate that the stream opens.
void add_layer_input(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act) {
  ops.run(op::Linear{std::array{term(weights.layer_gate, act.layer_gate)}, act.x});
  ops.run(op::Gate{act.layer_gate, act.layer_gate, act.layer_input, spec.ffn.gate});
  ops.run(op::Linear{std::array{term(weights.layer_out, act.h)}, act.layer_gate});
  ops.run(op::Norm{act.h, act.h, weights.layer_post_norm.weights(), spec.norm});
  ops.run(op::Add{act.x, act.h, 1.0f});
}

void run_parallel(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                  MemoryLayers memory) {
  ops.run(op::Norm{act.h, act.x, weights.attn_norm.weights(), spec.norm});
  mix_tokens(ops, spec, weights, act, {act.h, act.branch, memory});
  if (spec.wiring == Wiring::kParallelTwoNorms) ops.run(op::Norm{act.h, act.x, weights.ffn_norm.weights(), spec.norm});
  const Activation output = feed_forward(ops, spec, weights, act, act.h);
  ops.run(op::Add{act.x, act.branch, spec.residual_scale});
  ops.run(op::Add{act.x, output, spec.residual_scale});
}

void run_serial(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
                MemoryLayers memory) {
  if (spec.has_mixer()) {
    const Activation stream = spec.is_attn_bare ? act.x : read_stream(ops, spec, weights.attn_norm, act);
    const Activation input = spec.attends_beside_token ? act.beside : stream;
    if (spec.attends_beside_token) ops.run(op::Zip{act.beside, act.token, stream, stream.n_cols});
    const bool has_both = spec.has_attention && spec.is_recurrent();
    mix_tokens(ops, spec, weights, act, {input, has_both ? act.branch : act.h, memory});
    if (has_both) {
      keep_state_to(ops, spec, weights, act, {input, act.h, memory.state});
      write_stream(ops, spec, weights.attn_post_norm, act, act.branch);
    }
    write_stream(ops, spec, weights.attn_post_norm, act, act.h);
  }
  if (spec.has_ffn()) write_stream(ops, spec, weights.ffn_post_norm, act, serial_feed_forward(ops, spec, weights, act));
  if (spec.layer_dim > 0) add_layer_input(ops, spec, weights, act);
  if (spec.has_out_scale) ops.run(op::Scale{act.x, 1.0f, weights.out_scale.get()});
}

}  // namespace

Activation attended(const BlockSpec& spec, const BlockActivations& act) {
  return spec.has_latent() ? act.latent.wide : act.heads;
}

void run_block(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
               MemoryLayers memory) {
  if (is_parallel(spec.wiring)) return run_parallel(ops, spec, weights, act, memory);
  run_serial(ops, spec, weights, act, memory);
}

}  // namespace candor::model
