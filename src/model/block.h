#pragma once
// The transformer: what happens between the embedding and the head, written once for every architecture.

#include <cstdint>

#include "backend/backend.h"
#include "backend/op_terms.h"
#include "model/arch_spec.h"
#include "model/weights.h"

namespace candor::model {

// Of latent attention. L: the latent's width, R: that of the rotated part, P: of a head without it, Rq: query rank.
struct LatentActivations {
  backend::Activation low;      // [T, Rq]
  backend::Activation queries;  // [T, H * (P + R)]
  backend::Activation plain;    // [T, H * P]
  backend::Activation rotated;  // [T, H * R]
  backend::Activation wide;     // [T, H * L]: queries, then what they read
  backend::Activation joined;   // [T, L + R]
  backend::Activation latent;   // [T, L]
  backend::Activation key;      // [T, R]
};

// Of gated convolutions and of state spaces. C: channels of the convolution.
struct StateActivations {
  backend::Activation channels;  // [T, C]
  backend::Activation before;    // [T, C]: what gates a convolution's input
  backend::Activation gate;      // [T, W]: what gates the output
  backend::Activation step;      // [T, Hs]
  backend::Activation out;       // [T, W]
};

// Places of a block's layers in the memory of sequences: of K/V, and of recurrent states.
struct MemoryLayers {
  int32_t kv = 0;
  int32_t state = 0;
};

// Activations of one step, [T, n] each. x is the residual stream; the others hold nothing between blocks.
struct BlockActivations {
  backend::Activation x;           // [T, D]
  backend::Activation h;           // [T, D]
  backend::Activation q;           // [T, H * Dh]
  backend::Activation k;           // [T, Hk * Dh]
  backend::Activation v;           // [T, Hk * Dh]
  backend::Activation heads;       // [T, H * Dh]
  backend::Activation gate;        // [T, F]; of experts [T, n_used * F]
  backend::Activation up;          // as gate
  backend::Activation scores;      // [T, E]
  backend::Activation expert_out;  // [T, n_used * D]
  backend::Activation mixed;       // [T, D]
  backend::Activation branch;      // [T, D], of blocks wired in parallel, or of attention beside a state
  backend::Activation joined;      // [T, 2 * H * Dh] of q and gates; recurrent: [T, C]
  backend::Activation head_gate;   // [T, H * Dh]; recurrent: [T, Hv * v_dim]
  backend::Activation alpha;       // [T, Hv]
  backend::Activation beta;        // [T, Hv]
  backend::Activation beta_alpha;  // [T, 2 * Hv]
  backend::Activation shared_gate;  // [T, Fs]
  backend::Activation shared_up;    // [T, Fs]
  backend::Activation shared_score;  // [T, 1]
  LatentActivations latent;
  StateActivations state;
  backend::Activation layer_input;  // [T, P], what the tokens have for this block
  backend::Activation layer_gate;   // [T, P]
  backend::Activation bounded;      // [T, D], what a matrix with bounds reads
  backend::Activation token;        // [T, D], its embedding, normed, where attention reads it beside the stream
  backend::Activation beside;       // [T, 2 D]
};

// Where attention itself leaves its output.
backend::Activation attended(const BlockSpec& spec, const BlockActivations& act);

// x becomes the block's output.
void run_block(backend::Ops& ops, const BlockSpec& spec, const BlockWeights& weights, const BlockActivations& act,
               MemoryLayers memory);

}  // namespace candor::model
