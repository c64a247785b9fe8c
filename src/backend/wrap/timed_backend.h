#pragma once
// A backend that measures another one's operations: calls, time and bytes of weights read, by kind. Operations of a
// device that works in the background would be measured as calls only; the CPU's are done when they return. While
// nobody watches, ops() are those of the wrapped backend, and measuring costs nothing.
// Owns the backend that it wraps; borrows the clock. One thread, like every Backend, but for watch().

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/state_specs.h"
#include "backend/wrap/forwarding_backend.h"
#include "obs/clock.h"

namespace candor::backend {

enum class OpKind : uint8_t {
  kEmbed,
  kNorm,
  kLinear,
  kRope,
  kAttend,
  kGate,
  kMoe,
  kConv,
  kDelta,
  kSsm,
  kAdd,
  kGather,
  kCollect
};
inline constexpr size_t kOpKinds = 13;
std::string_view op_name(OpKind kind);

struct OpTime {
  int64_t n_calls = 0;
  int64_t ns = 0;
  uint64_t weight_bytes = 0;
};

class OpTimes {
 public:
  const OpTime& of(OpKind kind) const { return times_[static_cast<size_t>(kind)]; }
  OpTime& of(OpKind kind) { return times_[static_cast<size_t>(kind)]; }
  OpTime total() const;
  void clear() { times_ = {}; }

 private:
  std::array<OpTime, kOpKinds> times_{};
};

class TimedOps final : public Ops {
 public:
  TimedOps(Ops& inner, const obs::Clock& clock) : inner_(inner), clock_(clock) {}
  OpTimes& times() { return times_; }

  void embed(Activation dst, const Weight& table, float scale) override;
  void add_positions(Activation dst, const Weight& table) override;
  void norm(Activation dst, Activation src, NormWeights weights, const NormSpec& spec) override;
  void linear(std::span<const LinearTerm> terms, Activation src) override;
  void rope(Activation x, int32_t n_heads, int32_t head_dim, const RopeSpec& spec) override;
  void temper(Activation x, const TemperSpec& spec) override;
  void attend(Activation dst, const AttnTerm& term, const AttnSpec& spec) override;
  void gate(Activation dst, Activation gate_src, Activation up, GateKind kind) override;
  void activate(Activation x, GateKind kind) override;
  void moe(Activation dst, Activation src, const MoeTerm& term) override;
  void causal_conv(const ConvTerm& term, const ConvSpec& spec) override;
  void delta_rule(Activation dst, const DeltaTerm& term, const DeltaSpec& spec) override;
  void ssm_scan(Activation dst, const SsmTerm& term, const SsmSpec& spec) override;
  void unzip(Activation first, Activation second, Activation src, int32_t width) override;
  void zip(Activation dst, Activation first, Activation second, int32_t width) override;
  void linear_heads(Activation dst, Activation src, const Weight& weight, int32_t n_heads) override;
  void add_gated(Activation dst, Activation src, Activation gate) override;
  void scale(Activation x, float factor, const Weight* weight) override;
  void columns(Activation dst, Activation src, int32_t first) override;
  void add(Activation dst, Activation src, float scale) override;
  void gather(Activation dst, Activation src) override;
  void collect(Activation logits, const LogitSpec& spec) override;

 private:
  template <class Call>
  void measure(OpKind kind, uint64_t weight_bytes, Call&& call);

  Ops& inner_;
  const obs::Clock& clock_;
  OpTimes times_;
};

class TimedBackend final : public ForwardingBackend {
 public:
  TimedBackend(std::unique_ptr<Backend> inner, const obs::Clock& clock)
      : ForwardingBackend(std::move(inner)), ops_(ForwardingBackend::ops(), clock) {}
  OpTimes& times() { return ops_.times(); }
  // From the next block on. At first somebody watches. Any thread.
  void watch(bool is_watched) { is_watched_.store(is_watched, std::memory_order_relaxed); }

  Ops& ops() override {
    if (is_watched_.load(std::memory_order_relaxed)) return ops_;
    return ForwardingBackend::ops();
  }

 private:
  TimedOps ops_;
  std::atomic<bool> is_watched_{true};
};

}  // namespace candor::backend
