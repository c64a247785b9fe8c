#pragma once
// The operations of a model's layers: plain structs of operands and parameters, one list for all backends. A backend
// computes each of them; whatever only times, watches or records them handles them all in one function.
// A new operation is its struct here, its place in Op and its describe() in op_list.h, and one compute() a backend.
//
// Weights and parameters behind pointers are borrowed: from the model, while it lives. Lists (terms, experts) are
// borrowed for the call. Rows that an operation writes may be those that it reads where its comment says so.

#include <cstdint>
#include <span>

#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/state_specs.h"
#include "base/ids.h"

namespace candor::backend::op {

// dst: [T, D]; row t = table[tokens[t]] * scale, or its vector as it is, where the batch has one and it is wanted.
// Without a table every row has a vector.
struct Embed {
  Activation dst{};
  const Weight* table = nullptr;
  float scale = 1.0f;
  bool takes_vectors = false;
  TokenId vector_token = kNoToken;  // instead of the tokens of rows that have a vector
};

// dst: [T, D]; row t += table[positions[t]].
struct AddPositions {
  Activation dst{};
  const Weight* table = nullptr;
};

// dst: [T, D]; row t += table[its token's type] (StepBatch::type_of), the last row of the table where it has fewer.
struct AddTypes {
  Activation dst{};
  const Weight* table = nullptr;
};

// dst: [T, D]; rows that began with a vector += its numbers from `first` on (DeepStack: Meng et al., 2024).
struct AddVectors {
  Activation dst{};
  int32_t first = 0;
};

// dst, src: [T, D] (may be the same slot). [T, H * Dh] may be passed as [T * H, Dh] to normalise each head.
struct Norm {
  Activation dst{}, src{};
  NormWeights weights;
  NormSpec spec{};
};

// src: [T, in]. One input, several weights (Q, K and V; gate and up), so that the input is encoded once.
struct Linear {
  std::span<const LinearTerm> terms{};
  Activation src{};
};

// What the adapters of each row add to products of src, [T, in], one adapter of a row after another in the order of its
// uses. A row with none stays as it is.
struct Adapt {
  std::span<const AdapterTerm> terms{};
  Activation src{};
  std::span<const int32_t> rows{};  // [T]: the step's rows that these are; empty: all of them
};

// The same of embeddings, dst: [T, D]. Rows that began with a vector stay as they are.
struct AdaptEmbedding {
  Activation dst{};
  std::span<const AdapterTable> tables{};
  float scale = 1.0f;  // the embedding's
};

// Each head by rows of its own: src [T, H * in], weight [H * out, in], dst [T, H * out]. REQUIRES: out is a multiple
// of 16.
struct LinearHeads {
  Activation dst{}, src{};
  const Weight* weight = nullptr;
  int32_t n_heads = 0;
};

// x: [T, n_heads * head_dim], rotated in place by the positions of this step's rows.
struct Rope {
  Activation x{};
  int32_t n_heads = 0;
  int32_t head_dim = 0;
  const RopeSpec* spec = nullptr;
};

// x: [T, n], each row times temper_factor() of its position.
struct Temper {
  Activation x{};
  TemperSpec spec{};
};

// Appends k and v to their layer of the K/V store, then dst: [T, H * Dh] = attention of q over its own sequence's
// positions up to and including its own, or all of its group (StepBatch). With a latent: [T, H * latent_dim], and
// term.v is not read.
struct Attend {
  Activation dst{};
  AttnTerm term{};
  const AttnSpec* spec = nullptr;
};

// dst = act(gate) * up, element by element; all [T, F]; dst may be either source.
struct Gate {
  Activation dst{}, gate{}, up{};
  GateKind kind = GateKind::kSilu;
};

// x = act(x), element by element; [T, F].
struct Activate {
  Activation x{};
  GateKind kind = GateKind::kSilu;
};

// dst = src, kept within the two, element by element; dst may be src.
struct Clamp {
  Activation dst{}, src{};
  float low = 0.0f, high = 0.0f;
};

// dst: [T, D] = the outputs of each row's experts for src: [T, D], weighted, added in ascending order of the expert.
struct Moe {
  Activation dst{}, src{};
  MoeTerm term{};
};

// x = the sum of each channel's last n_taps inputs, weighted, the sequence's own, perhaps under silu; inputs before
// its first are 0.
struct CausalConv {
  ConvTerm term{};
  ConvSpec spec{};
};

// dst: [T, Hv * v_dim] = what each row reads of its sequence's state, brought up to it.
struct DeltaRule {
  Activation dst{};
  DeltaTerm term{};
  DeltaSpec spec{};
};

// dst: [T, Hs * head_dim], the same of a state space.
struct SsmScan {
  Activation dst{};
  SsmTerm term{};
  SsmSpec spec{};
};

// dst += src * scale; both [T, D].
struct Add {
  Activation dst{}, src{};
  float scale = 1.0f;
};

// dst += src * sigmoid(gate); [T, D], [T, D] and [T, 1].
struct AddGated {
  Activation dst{}, src{}, gate{};
};

// x *= factor, and times weight[0] where there is a weight.
struct Scale {
  Activation x{};
  float factor = 1.0f;
  const Weight* weight = nullptr;
};

// src: [T, n + m]: a piece of `width` columns goes to first, [T, n], the next one to second, [T, m], and so on: n /
// width pieces each.
struct Unzip {
  Activation first{}, second{}, src{};
  int32_t width = 0;
};

// The way back: dst: [T, n + m].
struct Zip {
  Activation dst{}, first{}, second{};
  int32_t width = 0;
};

// dst: [T, n] = columns [first, first + n) of src.
struct Columns {
  Activation dst{}, src{};
  int32_t first = 0;
};

// dst: [n_out, D] = rows out_rows of src: [T, D].
struct Gather {
  Activation dst{}, src{};
};

// logits: [n_out, V], scaled and capped, become the result of the step.
struct Collect {
  Activation logits{};
  LogitSpec spec{};
};

}  // namespace candor::backend::op
