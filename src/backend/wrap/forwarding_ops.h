#pragma once
// Ops that pass every operation to another Ops: the base class of decorators that override a few operations. Borrows
// the other Ops.

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/state_specs.h"

namespace candor::backend {

class ForwardingOps : public Ops {
 public:
  explicit ForwardingOps(Ops& inner) : inner_(inner) {}

  void embed(Activation dst, const Weight& table, float scale) override { inner_.embed(dst, table, scale); }
  void add_positions(Activation dst, const Weight& table) override { inner_.add_positions(dst, table); }
  void norm(Activation dst, Activation src, NormWeights weights, const NormSpec& spec) override {
    inner_.norm(dst, src, weights, spec);
  }
  void linear(std::span<const LinearTerm> terms, Activation src) override { inner_.linear(terms, src); }
  void rope(Activation x, int32_t n_heads, int32_t head_dim, const RopeSpec& spec) override {
    inner_.rope(x, n_heads, head_dim, spec);
  }
  void temper(Activation x, const TemperSpec& spec) override { inner_.temper(x, spec); }
  void attend(Activation dst, const AttnTerm& term, const AttnSpec& spec) override { inner_.attend(dst, term, spec); }
  void gate(Activation dst, Activation gate_src, Activation up, GateKind kind) override {
    inner_.gate(dst, gate_src, up, kind);
  }
  void activate(Activation x, GateKind kind) override { inner_.activate(x, kind); }
  void moe(Activation dst, Activation src, const MoeTerm& term) override { inner_.moe(dst, src, term); }
  void causal_conv(const ConvTerm& term, const ConvSpec& spec) override { inner_.causal_conv(term, spec); }
  void delta_rule(Activation dst, const DeltaTerm& term, const DeltaSpec& spec) override {
    inner_.delta_rule(dst, term, spec);
  }
  void ssm_scan(Activation dst, const SsmTerm& term, const SsmSpec& spec) override { inner_.ssm_scan(dst, term, spec); }
  void unzip(Activation first, Activation second, Activation src, int32_t width) override {
    inner_.unzip(first, second, src, width);
  }
  void zip(Activation dst, Activation first, Activation second, int32_t width) override {
    inner_.zip(dst, first, second, width);
  }
  void linear_heads(Activation dst, Activation src, const Weight& weight, int32_t n_heads) override {
    inner_.linear_heads(dst, src, weight, n_heads);
  }
  void add_gated(Activation dst, Activation src, Activation gate) override { inner_.add_gated(dst, src, gate); }
  void scale(Activation x, float factor, const Weight* weight) override { inner_.scale(x, factor, weight); }
  void columns(Activation dst, Activation src, int32_t first) override { inner_.columns(dst, src, first); }
  void add(Activation dst, Activation src, float scale) override { inner_.add(dst, src, scale); }
  void gather(Activation dst, Activation src) override { inner_.gather(dst, src); }
  void collect(Activation logits, const LogitSpec& spec) override { inner_.collect(logits, spec); }

 private:
  Ops& inner_;
};

}  // namespace candor::backend
