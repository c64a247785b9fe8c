#pragma once
// The arguments of operations: weights, activations, and the structs (terms) that combine them. Letters: T rows of a
// step, D width, H and Hk heads and K/V heads, Dh head width, F feed-forward width, E experts, C channels, Hv value
// heads, Hs heads of a state space.

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/op_specs.h"
#include "base/ids.h"

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
  Activation dst;                  // [T, out], overwritten; or the first outputs alone, a multiple of 16
};

// Of a norm: y = normalised x * gain + bias.
struct NormWeights {
  NormWeights(const Weight& gain_of, const Weight* bias_of = nullptr) : gain(&gain_of), bias(bias_of) {}
  NormWeights(const Weight* gain_of, const Weight* bias_of) : gain(gain_of), bias(bias_of) {}
  const Weight* gain;  // [D], or nullptr for ones; of several D, successive rows take them in turn
  const Weight* bias;  // [D] or nullptr
};

// What an adapter adds to the rows of a product y = W x + bias that use it, `scale` and the row's own scale s together:
//   y += s * up (down x)                                                     (Hu et al., "LoRA", 2021)
//   y += s_row * (gain - 1) * (y - bias), then y += s * gain * up (down x)   with gains (Liu et al., "DoRA", 2024)
//   y += s_row * (up x - y), which is up x where s_row is 1                  without `down`: another W altogether
struct AdapterTerm {
  AdapterId adapter = kNoAdapter;
  const Weight* down = nullptr;            // [rank, in] or nullptr
  const Weight* up = nullptr;              // [out, rank]; [out, in] without `down`
  float scale = 1.0f;                      // of `up (down x)`
  const Weight* gains = nullptr;           // [out] or nullptr
  const Weight* gains_less_one = nullptr;  // [out] where there are gains
  const Weight* bias = nullptr;            // [out] or nullptr: the product's own
  Activation dst{};                        // [T, out], what the product gave
};

// The same of an embedding's rows, by their tokens. Scales are multiplied by the embedding's own.
struct AdapterTable {
  AdapterId adapter = kNoAdapter;
  const Weight* down = nullptr;  // [V, rank], or [V, D] without `up`: another embedding altogether
  const Weight* up = nullptr;    // [D, rank] or nullptr
  float scale = 1.0f;
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
  const Weight* biases = nullptr;  // [H * (2 * bias_reach + 1)] where the spec has a reach
};

// What an adapter adds to one matrix of one expert. The term's dst is not read.
enum class ExpertPart : uint8_t { kGate, kUp, kDown };
struct ExpertAdapter {
  int32_t expert = 0;
  ExpertPart part = ExpertPart::kUp;
  AdapterTerm term{};
};

struct MoeTerm {
  std::span<const Expert> experts;  // [E]
  MoeSpec spec;
  GateKind kind = GateKind::kSilu;
  Activation scores;             // [T, E], the router's
  Activation gate, up, outputs;  // room: [T * n_used, F] twice, [T * n_used, D]; overwritten
  const Weight* choice_bias = nullptr;  // [E] where the spec has one
  const Weight* expert_scales = nullptr;  // [E] where the spec has them
  const Weight* bias = nullptr;           // [D] or nullptr: what the sum of a row begins with
  std::span<const ExpertAdapter> adapters{};  // by expert, then part, ascending
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
