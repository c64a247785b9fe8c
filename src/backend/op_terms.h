#pragma once
// The arguments of operations: weights, activations, and the structs (terms) that combine them. Letters: T rows of a
// step, D width, H and Hk heads and K/V heads, Dh head width, F feed-forward width, E experts, C channels, Hv value
// heads, Hs heads of a state space.

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/op_specs.h"

namespace candor::backend {

// A weight in the backend's own memory and order. Owned by the model, freed before the backend.
class Weight {
 public:
  virtual ~Weight() = default;
  virtual int64_t n_rows() const = 0;  // outputs; 1 for a vector
  virtual int64_t n_cols() const = 0;  // inputs
  virtual size_t n_bytes() const = 0;  // memory that it occupies here
};

// Handle of an f32 activation matrix [n_rows, n_cols] in the arena. Slots are declared by reserve_arena; within a step
// the same slot always means the same memory. Cheap to copy.
struct Activation {
  int32_t slot = 0;
  int32_t n_rows = 0;
  int32_t n_cols = 0;
};

struct LinearTerm {
  const Weight* weight = nullptr;  // [out, in]
  const Weight* bias = nullptr;    // [out] or nullptr
  Activation dst;                  // [T, out], overwritten
};

// Of a norm: y = normalised x * gain + bias.
struct NormWeights {
  NormWeights(const Weight& gain_of, const Weight* bias_of = nullptr) : gain(&gain_of), bias(bias_of) {}
  NormWeights(const Weight* gain_of, const Weight* bias_of) : gain(gain_of), bias(bias_of) {}
  const Weight* gain;  // [D], or nullptr for ones; of several D, successive rows take them in turn
  const Weight* bias;  // [D] or nullptr
};

struct Expert {
  const Weight* gate = nullptr;       // [F, D], or nullptr: outputs are down(act(up x))
  const Weight* up = nullptr;         // [F, D]
  const Weight* down = nullptr;       // [D, F]
  const Weight* gate_bias = nullptr;  // [F] or nullptr
  const Weight* up_bias = nullptr;    // [F] or nullptr
  const Weight* down_bias = nullptr;  // [D] or nullptr
};

// The operands of attention, q and k already rotated.
struct AttnTerm {
  Activation q;                   // [T, H * Dh]
  Activation k, v;                // [T, Hk * Dh]; v of no columns where values are the beginnings of keys; k of none
                                  // where the rows are in the layer already
  int32_t layer = 0;              // of the K/V store
  const Weight* sinks = nullptr;  // [H] where the spec has sinks
};

struct MoeTerm {
  std::span<const Expert> experts;  // [E]
  MoeSpec spec;
  GateKind kind = GateKind::kSilu;
  Activation scores;             // [T, E], the router's
  Activation gate, up, outputs;  // room: [T * n_used, F] twice, [T * n_used, D]; overwritten
  const Weight* choice_bias = nullptr;  // [E] where the spec has one
  const Weight* expert_scales = nullptr;  // [E] where the spec has them
};

// The operands of a causal convolution.
struct ConvTerm {
  Activation x;  // [T, C], overwritten
  const Weight* taps = nullptr;  // [C, n_taps], the row's own input last
  int32_t layer = 0;  // of those with a recurrent state
  const Weight* bias = nullptr;  // [C] or nullptr
  int32_t first_channel = 0;     // taps and bias are those of channels from here on, and only these are convolved
};

// The operands of a delta rule.
struct DeltaTerm {
  Activation qkv;                // [T, C] behind the convolution: all heads of q, of k, of v
  Activation alpha, beta;        // [T, Hv]; alpha [T, Hv * k_dim] where channels have gates of their own
  const Weight* rate = nullptr;  // [Hv], below 0
  const Weight* bias = nullptr;  // [Hv] or [Hv * k_dim], added to alpha
  int32_t layer = 0;             // of those with a recurrent state
};

// The operands of a state space.
struct SsmTerm {
  Activation xbc;                // [T, C] behind the convolution: x of all heads, b of all groups, c of all groups
  Activation dt;                 // [T, Hs]
  const Weight* rate = nullptr;  // [Hs], below 0
  const Weight* bias = nullptr;  // [Hs], added to dt
  const Weight* skip = nullptr;  // [Hs]
  int32_t layer = 0;             // of those with a recurrent state
};

}  // namespace candor::backend
