#pragma once
// An architecture as data: what block() needs to know, per layer, comparable and printable (`candor show`).
// Letters: D = dim, F = ffn_dim, V = vocab.

#include <cstdint>
#include <string>
#include <vector>

#include "backend/op_specs.h"
#include "backend/state_specs.h"
#include "base/ids.h"

namespace candor::model {

// Where the norms stand around attention and feed-forward: before each, after each (before it is added to the residual
// stream), or both; kStreamNorm: over the stream itself, after each was added to it (Vaswani et al., 2017; BERT).
// kParallel, kParallelTwoNorms: both read the stream as the block found it, behind one norm or behind
// one each.
enum class Wiring : uint8_t { kPreNorm, kPostNorm, kSandwich, kParallel, kParallelTwoNorms, kStreamNorm };
constexpr bool is_parallel(Wiring wiring) {
  return wiring == Wiring::kParallel || wiring == Wiring::kParallelTwoNorms;
}
// Attention and feed-forward read the stream as it is.
constexpr bool reads_bare_stream(Wiring wiring) {
  return wiring == Wiring::kPostNorm || wiring == Wiring::kStreamNorm;
}

// Which norm q and k take before rotation: none, one over each head (with gains that all heads share, or with gains of
// its own), or one over all heads together.
enum class QkNorm : uint8_t { kNone, kHeads, kOwnHeads, kWhole };

// down(act(gate x) * up x), or down(act(up x)) where there is no gate. ffn_dim 0: there is none. With experts, ffn_dim
// is that of one; every row may also go to one more, shared_dim wide, whose output counts whole, or as much as a
// sigmoid of the row says.
struct FfnSpec {
  int32_t ffn_dim = 0;
  backend::GateKind gate = backend::GateKind::kSilu;
  bool is_gated = true;
  backend::MoeSpec moe;
  int32_t shared_dim = 0;
  bool is_shared_gated = true;
  // The shared expert and the others read the stream behind a norm each, and each's output is normed before they are
  // added; the router reads the stream normed, times D^-0.5.
  bool has_parted_norms = false;
  bool is_moe() const { return moe.n_experts > 0; }
  bool operator==(const FfnSpec&) const = default;
};

// Latent attention (DeepSeek-AI, "DeepSeek-V2", 2024): a token's key is a normalised latent, from which each head's key
// and value could be projected, and a rotated part that all heads share; attn.head_dim is the width of both together,
// attn.latent_dim that of the latent, and a latent is what the K/V store keeps. A head's query has a part without
// rotation, which is projected to the latent's width, and a rotated part.
struct LatentSpec {
  int32_t query_rank = 0;  // q is projected from a normalised vector of this width; 0 = from the stream itself
  int32_t head_dim = 0;    // of a head's query (and key) without the rotated part; 0 = no latent attention
  int32_t value_dim = 0;   // of a head's value
  float epsilon = 1e-6f;   // of the norms of both
  bool operator==(const LatentSpec&) const = default;
};

// Of a block's matrices, where they have any (Gemma 4's towers).
struct BlockBounds {
  backend::MatrixBounds q{}, k{}, v{}, attn_out{}, gate{}, up{}, down{};
  bool operator==(const BlockBounds&) const = default;
  bool exist() const { return *this != BlockBounds{}; }
};

// One block has attention, one of the layers that keep a state (a delta rule, a gated convolution or a state space),
// both side by side, or neither; and a feed-forward, or none.
struct BlockSpec {
  Wiring wiring = Wiring::kPreNorm;
  backend::NormSpec norm;
  backend::AttnSpec attn;  // that of the others where the block has none
  bool has_attention = true;
  backend::DeltaSpec delta;
  backend::GateKind delta_gate = backend::GateKind::kSilu;  // of its normalised output
  bool has_delta_parts = false;  // q, k and v of the delta rule are projected and convolved each by itself
  float delta_epsilon = 0.0f;    // of the norm of its output; 0: that of the others
  backend::ConvSpec gated_conv;  // out(c * conv(b * x)), with b, c and x projected from the row
  backend::SsmSpec ssm;          // under silu of a gate, then a norm over each group where has_ssm_norm
  bool has_ssm_norm = true;
  LatentSpec latent;
  QkNorm qk_norm = QkNorm::kNone;
  bool has_head_gate = false;  // attention's output times the sigmoid of a gate, which stands behind each head of q
  bool is_gate_apart = false;  // that gate is projected by itself
  FfnSpec ffn;
  float residual_scale = 1.0f;
  int32_t kv_block = -1;              // the block before it whose keys and values it reads; -1: it has its own
  bool values_are_keys = false;       // v is what k is projected to, before its norm
  bool has_value_norm = false;        // over each head, without gains
  bool norms_after_rope = false;      // qk_norm behind the rotation
  bool is_attn_bare = false;          // attention reads the stream without the norm that other blocks have
  bool attends_beside_token = false;  // attention reads a norm of the token's embedding, and beside it what it would
  int32_t layer_dim = 0;       // of what the token has for this block (EmbedSpec), gated and added behind the rest
  bool has_out_scale = false;  // the output is multiplied by one number
  BlockBounds bounds{};        // of q, k and v, attention's output and a plain feed-forward
  bool joins_gate() const { return has_head_gate && !is_gate_apart; }
  bool shares_kv() const { return kv_block >= 0; }
  bool has_delta() const { return delta.n_v_heads > 0; }
  bool has_gated_conv() const { return gated_conv.n_taps > 0; }
  bool has_ssm() const { return ssm.n_heads > 0; }
  bool is_recurrent() const { return has_delta() || has_gated_conv() || has_ssm(); }  // keeps a state
  bool has_mixer() const { return has_attention || is_recurrent(); }
  bool has_ffn() const { return ffn.ffn_dim > 0; }
  int64_t state_floats() const {
    return has_delta()        ? delta.state_floats()
           : has_ssm()        ? ssm.state_floats()
           : has_gated_conv() ? gated_conv.state_floats()
                              : 0;
  }
  bool has_latent() const { return latent.head_dim > 0; }
  int32_t rotated_dim() const { return attn.head_dim - attn.latent_dim; }  // with a latent
  bool operator==(const BlockSpec&) const = default;
};

struct EmbedSpec {
  float scale = 1.0f;
  bool has_positions = false;  // a table of positions is added (learned, or sinusoids written out)
  int32_t n_types = 0;         // > 0: a row of a table of types is added (op::AddTypes)
  bool has_norm = false;
  // > 0: every block gets a vector of this width, out of a table of its own for the token and out of the embedding.
  int32_t layer_dim = 0;
  TokenId layer_image_token = kNoToken;  // whose row of that table rows of images take; kNoToken: their token's
  // A row begins as a projection of two norms: of its token's embedding, and of the vector that it comes with.
  bool joins_vectors = false;
  backend::NormSpec join_norm{};
  // EAGLE-3 (model/eagle.h): a row begins with its vector. Those of a model are what it had before these of its blocks,
  // vector_dim wide together, and are projected to D; others are D wide.
  std::vector<int32_t> vector_layers{};
  int32_t vector_dim = 0;
  bool norms_vectors = false;  // before they are projected, all together
  bool operator==(const EmbedSpec&) const = default;
};

struct HeadSpec {
  bool is_absent = false;     // what comes out are hidden states: no row has logits
  bool tied = false;          // the embedding table is the output projection
  int32_t n_first = 0;        // logits of the first so many tokens alone, a multiple of 16; 0: of all
  bool is_own = true;         // false: the output projection is that of the model that this is a head of
  int32_t n_tokens = 0;       // rows of the output projection; 0: one for each token of the vocabulary
  bool gives_stream = false;  // Model::hidden() is the stream, in front of the final norm
  bool is_of_masked = false;  // it guesses masked words: behind a layer, an exact GELU and a LayerNorm of its own
  backend::LogitSpec logits;
  bool operator==(const HeadSpec&) const = default;
};

// Contexts of up to so many positions are rotated by factors of their own (Ding et al., "LongRoPE", 2024); 0: by those
// of all others.
struct ShortContext {
  int32_t positions = 0;
  std::vector<float> frequency_factors{};  // [n_dims / 2]
  bool operator==(const ShortContext&) const = default;
};

struct ArchSpec {
  std::string family;  // "llama"
  int32_t dim = 0;
  int32_t vocab = 0;
  int32_t max_positions = 0;
  ShortContext short_context;  // that may be served: fit_context()
  bool is_short = false;       // it is served
  EmbedSpec embed;
  std::vector<BlockSpec> blocks;
  int32_t first_block = 0;                 // the number of blocks.front() in the file
  int32_t n_prediction_blocks = 0;         // behind them in the file: multi-token prediction (model/prediction.h)
  bool has_layer_norm_prediction = false;  // whose last norm is a LayerNorm
  backend::NormSpec final_norm;
  bool has_final_norm = true;
  HeadSpec head;
  int32_t n_deep = 0;    // behind each of the first so many blocks, rows that began with a vector get more of it
  bool keeps_kv = true;  // false: all blocks use one layer of the K/V store, as no step reads what another one wrote
  bool is_bidirectional = false;  // every row of a text sees all of its rows, which one step computes
  bool operator==(const ArchSpec&) const = default;
};

// Rows of the output projection.
inline int32_t head_tokens(const ArchSpec& spec) {
  return spec.head.n_tokens > 0 ? spec.head.n_tokens : spec.vocab;
}

}  // namespace candor::model
