#include "model/block.h"

#include <array>

namespace candor::model {
namespace {

using backend::Activation;
using backend::LinearTerm;
using backend::Ops;

LinearTerm term(const Projection& projection, Activation dst) {
  return {projection.weight.get(), projection.bias.get(), dst};
}

void attention(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
               int32_t layer) {
  const backend::AttnSpec& attn = spec.attn;
  ops.norm(act.h, act.x, *weights.attn_norm, spec.norm);
  ops.linear(std::array{term(weights.q, act.q), term(weights.k, act.k), term(weights.v, act.v)}, act.h);
  if (attn.rope.n_dims > 0) {
    ops.rope(act.q, attn.n_heads, attn.head_dim, attn.rope);
    ops.rope(act.k, attn.n_kv_heads, attn.head_dim, attn.rope);
  }
  ops.attend(act.heads, act.q, act.k, act.v, layer, attn);
  ops.linear(std::array{term(weights.attn_out, act.h)}, act.heads);
  ops.add(act.x, act.h, spec.residual_scale);
}

void feed_forward(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act) {
  ops.norm(act.h, act.x, *weights.ffn_norm, spec.norm);
  ops.linear(std::array{term(weights.gate, act.gate), term(weights.up, act.up)}, act.h);
  ops.gate(act.gate, act.gate, act.up, spec.ffn.gate);
  ops.linear(std::array{term(weights.down, act.h)}, act.gate);
  ops.add(act.x, act.h, spec.residual_scale);
}

}  // namespace

void run_block(Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
               int32_t layer) {
  attention(ops, spec, weights, act, layer);
  feed_forward(ops, spec, weights, act);
}

}  // namespace candor::model
