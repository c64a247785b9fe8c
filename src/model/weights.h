#pragma once
// The weights of a model in a backend, by role; and the binding of a file's tensors to those roles. Binding checks
// every shape exactly, and every tensor of the file is bound or listed as ignored by its family: anything else is
// refused. Owned by Model; freed before the backend.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/op_terms.h"
#include "base/error.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/families/families.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/tensor_roles.h"
#include "tensor/tensor_view.h"

namespace candor::model {

using WeightPtr = std::unique_ptr<backend::Weight>;

struct Projection {
  WeightPtr weight;  // [out, in]
  WeightPtr bias;    // [out] or nullptr
};

struct Norm {
  WeightPtr gain;  // [D], or [Dh] over each head; nullptr for ones
  WeightPtr bias;  // [D] or nullptr
  backend::NormWeights weights() const { return {gain.get(), bias.get()}; }
};

struct ExpertWeights {
  Projection gate;  // [F, D]
  Projection up;    // [F, D]
  Projection down;  // [D, F]
};

// What an architecture lacks is nullptr.
struct BlockWeights {
  Norm attn_norm;
  Projection q;  // [H * Dh, D]; twice the rows where heads have gates
  Projection k;  // [Hk * Dh, D]
  Projection v;  // [Hk * Dh, D]
  Norm q_norm;
  Norm k_norm;
  WeightPtr sinks;      // [H]
  WeightPtr distance_biases;  // [H * (2 * bias_reach + 1)]
  Projection attn_gate;  // [H * Dh, D]
  Projection attn_out;  // [D, H * Dh]
  Projection query_down;    // [Rq, D]; q is then [.., Rq]
  Norm query_norm;          // [Rq]
  Projection latent;        // [L + R, D]: the latent, and the rotated part
  Norm latent_norm;         // [L]
  Projection latent_key;    // [H * L, head], for each head by itself
  Projection latent_value;  // [H * value, L], for each head by itself
  Norm attn_post_norm;
  Projection delta_qkv;         // [C, D]
  Projection delta_gate;        // [Hv * v_dim, D]
  Projection delta_q;           // [Hk * k_dim, D], of those with a gate for each channel; so to delta_gate_down
  Projection delta_k;           // [Hk * k_dim, D]
  Projection delta_v;           // [Hv * v_dim, D]
  std::array<WeightPtr, 3> delta_part_taps;  // [.., n_taps] of q, k and v
  Projection delta_alpha_down;  // [k_dim, D]; alpha is then [Hv * k_dim, k_dim]
  Projection delta_gate_down;   // [v_dim, D]; the gate is then [.., v_dim]
  Projection delta_alpha;       // [Hv, D]
  Projection delta_beta;        // [Hv, D]
  Projection delta_beta_alpha;  // [2 Hv, D], of each key head beta's rows, then alpha's; or those two
  WeightPtr delta_taps;         // [C, n_taps]
  WeightPtr delta_rate;         // [Hv]
  WeightPtr delta_bias;         // [Hv]
  Norm delta_norm;              // [v_dim]
  Projection delta_out;         // [D, Hv * v_dim]
  Projection conv_b;       // [D, D], of a gated convolution
  Projection conv_c;       // [D, D]
  Projection conv_x;       // [D, D]
  WeightPtr conv_taps;     // [D, n_taps]
  Projection conv_out;     // [D, D]
  Projection ssm_gate;     // [Hs * head, D]
  Projection ssm_channels;  // [C, D]: x, b and c
  Projection ssm_step;     // [Hs, D]
  WeightPtr ssm_taps;      // [C, n_taps]
  WeightPtr ssm_taps_bias;  // [C]
  WeightPtr ssm_rate;      // [Hs]
  WeightPtr ssm_skip;      // [Hs]
  WeightPtr ssm_step_bias;  // [Hs]
  Norm ssm_norm;           // [Hs * head], of each group its own
  Projection ssm_out;      // [D, Hs * head]
  Norm ffn_norm;
  Projection gate;                            // [F, D]
  Projection up;                              // [F, D]
  Projection down;                            // [D, F]
  Projection router;                          // [E, D]
  WeightPtr choice_bias;                      // [E]
  std::vector<ExpertWeights> experts;         // [E]
  std::vector<backend::Expert> expert_views;  // [E], of experts
  Projection shared_router;                   // [1, D]
  Projection shared_gate;                     // [Fs, D]
  Projection shared_up;                       // [Fs, D]
  Projection shared_down;                     // [D, Fs]
  Norm ffn_post_norm;
  Norm router_norm;          // of what the router reads
  WeightPtr expert_scales;   // [E]
  WeightPtr mix_bias;        // [D] or nullptr
  Norm expert_norm;
  Norm expert_post_norm;
  Norm shared_post_norm;
  Projection layer_gate;     // [P, D]; P: EmbedSpec::layer_dim
  Projection layer_out;      // [D, P]
  Norm layer_post_norm;
  WeightPtr out_scale;       // [1]
};

struct ModelWeights {
  WeightPtr embedding;  // [V, D]
  WeightPtr positions;  // [max_positions, D]
  WeightPtr types;      // [n_types, D]
  Norm embed_norm;
  WeightPtr layer_table;        // [V, blocks * P]
  Projection layer_projection;  // [blocks * P, D]
  Norm layer_norm;              // [P]
  std::vector<BlockWeights> blocks;
  Norm final_norm;
  Projection head;  // [V, D]; no weight where the embedding serves
  Projection word_dense;  // [D, D], of heads that guess masked words
  Norm word_norm;         // [D]
  Projection join;        // [D, 2 D], where rows begin with vectors too; [D, vector_dim]
  Norm join_token_norm;   // [D]
  Norm join_vector_norm;  // [D]
  Norm vectors_norm;      // [vector_dim]
};

// One tensor of the file, or a piece of one that the file keeps together, and the place that it is for.
struct Binding {
  TensorView view;
  TensorRole role = TensorRole::kEmbedding;
  int32_t layer = 0;  // 0 for tensors outside the blocks
  int32_t expert = 0;
};

// Names, shapes and completeness, without reading a weight.
Result<std::vector<Binding>> bind_tensors(const formats::ModelFile& file, const Family& family, const ArchSpec& spec);
// The same of a head for multi-token prediction (prediction.h), which has no tensors but those of its block. Of either
// kind of head: draft_head.h.
Result<std::vector<Binding>> bind_prediction(const formats::ModelFile& file, const Family& family,
                                             const ArchSpec& spec);

backend::WeightRole packing_of(const Binding& binding, const ArchSpec& spec);

// Where weights come from, what for and where to.
struct Upload {
  const formats::ModelFile& file;
  const ArchSpec& spec;
  backend::Backend& backend;
  Contents& contents;
};
// Uploads what was bound, in the file's order, and asks behind each tensor whether the file is still whole. Vectors
// that hold NaN or infinity are refused. contents: of what was read.
Result<std::unique_ptr<ModelWeights>> upload_weights(std::span<const Binding> bindings, const Upload& upload,
                                                     const LoadOptions& options);

// Memory that upload_weights() will take.
Result<uint64_t> upload_bytes(std::span<const Binding> bindings, const ArchSpec& spec, const backend::Backend& backend);

// Memory that the weights occupy in the backend.
size_t weight_bytes(const ModelWeights& weights);

}  // namespace candor::model
