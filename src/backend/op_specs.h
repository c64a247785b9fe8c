#pragma once
// The parameters of operations (rotary positions, attention, norms, K/V layout): plain, comparable, printable data.
// Rotary scalings: linear (Chen et al., "Extending context window via position interpolation", 2023), YaRN (Peng et
// al., 2023, "NTK by parts") and the rule of Llama 3.1's model card.

#include <cstdint>
#include <limits>
#include <vector>

#include "candor/kv_type.h"

namespace candor::backend {

enum class NormKind : uint8_t { kRms, kLayer };
struct NormSpec {
  NormKind kind = NormKind::kRms;
  float epsilon = 1e-5f;
  bool operator==(const NormSpec&) const = default;
};

// Which elements of a head form the pairs that are rotated together.
enum class RopePairs : uint8_t { kInterleaved, kHalves };  // (2i, 2i+1) | (i, i + n_dims/2)
enum class RopeScaling : uint8_t { kNone, kLinear, kYarn, kLlama3 };
struct RopeSpec {
  RopePairs pairs = RopePairs::kInterleaved;
  int32_t n_dims = 0;  // rotated dimensions of each head, even; 0 = no rotation
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                   // linear, yarn, llama3
  int32_t original_positions = 0;        // yarn, llama3: context of the first training
  double low_freq_factor = 1.0;          // llama3
  double high_freq_factor = 4.0;         // llama3
  double attention_factor = 1.0;         // yarn: scales cos and sin
  double beta_fast = 32.0;               // yarn
  double beta_slow = 1.0;                // yarn
  bool is_truncated = true;              // yarn: the ramp begins and ends at whole pairs
  std::vector<float> frequency_factors;  // [n_dims / 2], from the file (rope_freqs.weight); empty = none
  // [n_dims / 2]: which of a row's positions (StepBatch::axes) turns the pair; empty: all turn by the row's one
  // position, and so they do in a batch without axes.
  std::vector<uint8_t> axes;
  std::vector<double> own_frequencies;  // [n_dims / 2], instead of what base, scaling and factors say; empty = none
  bool operator==(const RopeSpec&) const = default;
};

// [n_dims / 2]: radians that pair i turns with each position, scaling and frequency factors included. Position p turns
// it by p times this; cos and sin are then multiplied by attention_factor. Computed in double.
std::vector<double> rope_frequencies(const RopeSpec& spec);

// Queries grow with their position, so that scores over long contexts stay as sharp (Nakanishi, "Scalable-softmax",
// 2025; Llama 4's form): times temper_factor().
struct TemperSpec {
  float gain = 0.0f;   // 0 = as they are
  int32_t step = 0;    // positions
  int32_t offset = 0;  // of positions
  bool operator==(const TemperSpec&) const = default;
};

// 1 + gain * ln(1 + floor((position + offset) / step)). Computed in double. REQUIRES: step > 0.
double temper_factor(const TemperSpec& spec, int32_t position);

struct AttnSpec {
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;  // divides n_heads
  int32_t head_dim = 0;
  float scale = 0.0f;           // of q.k before softmax
  int32_t window_tokens = 0;    // 0 = every earlier position; else position p sees (p - window, p]
  float softcap = 0.0f;         // score = softcap * tanh(score / softcap); 0 = as it is
  float max_alibi_bias = 0.0f;  // score of position t seen from p -= slope * (p - t), alibi_slopes(); 0 = none
  int32_t bias_reach = 0;       // score of position t seen from p += a weight for t - p, kept within this; 0 = none
  RopeSpec rope;
  TemperSpec temper{};
  bool has_sinks = false;     // each head's softmax has one more score, a weight, of no token
  int32_t latent_dim = 0;     // a token's value is the beginning of its key, this wide; 0 = it has one of its own
  int32_t chunk_tokens = 0;   // > 0: p sees those of its own chunk, [p - p % chunk, p]; then there is no window
  bool sees_groups = true;    // rows of a group see it all, also what comes later (StepBatch)
  bool is_two_sided = false;  // the window reaches as far ahead, in rows of a group: (p - window, p + window)
  // Where these heads are a rank's own, [first_head, first_head + n_heads) of so many; 0 = they are all.
  int32_t n_all_heads = 0;
  int32_t first_head = 0;
  bool operator==(const AttnSpec&) const = default;

  int32_t value_dim() const { return latent_dim > 0 ? latent_dim : head_dim; }
};

// [n_heads]: of all heads. Press et al., "Train short, test long", 2022. For a power of two n of heads head i has
// 2^(-max_bias * (i + 1) / n); other counts take every second slope of twice the next lower power for the heads past
// it.
std::vector<float> alibi_slopes(int32_t n_heads, float max_bias);

// What an activation makes of x, or of a gate's x and the u that it gates (times u, where nothing else is said).
// kSilu: x / (1 + e^-x). kGelu: the tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
// kGeluErf: the exact form, 0.5 x (1 + erf(x / sqrt(2))). kRelu: max(x, 0). kReluSquared: its square.
// kClampedSilu, of gates only: g / (1 + e^(-1.702 g)) * (clamp(u, -7, 7) + 1) with g = min(x, 7).
// kSigmoid: 1 / (1 + e^-x). kProduct: x itself.
enum class GateKind : uint8_t { kSilu, kGelu, kGeluErf, kRelu, kReluSquared, kClampedSilu, kSigmoid, kProduct };
inline constexpr int kGateKinds = 8;

// A mixture of experts: which experts a row goes to and how their outputs are added (backend/routing.h).
enum class ExpertShare : uint8_t { kSoftmax, kSigmoid };
struct MoeSpec {
  int32_t n_experts = 0;    // 0 = an ordinary feed-forward
  int32_t n_used = 0;       // experts of a row
  bool renormalise = true;  // weights are shares of the chosen experts' sum; false: the shares themselves
  ExpertShare share = ExpertShare::kSoftmax;  // what an expert's score makes
  float scale = 1.0f;                         // of the weights
  // Experts are chosen out of the best groups alone: each of n_experts / n_groups in a row, as good as its n_group_best
  // best experts together.
  int32_t n_groups = 1;  // divides n_experts
  int32_t n_groups_used = 1;
  int32_t n_group_best = 1;
  bool has_choice_bias = false;    // is added to the shares for the choice, not for the weights
  bool has_expert_scales = false;  // weights are multiplied by one number for each expert
  bool weighs_inputs = false;      // the weight multiplies what an expert reads, not what it gives
  bool operator==(const MoeSpec&) const = default;

  int32_t group_size() const { return n_experts / n_groups; }
};

// What goes into a matrix and what comes out of it is kept within two numbers each. NaN stays.
constexpr float clamped(float x, float low, float high) {
  return x < low ? low : x > high ? high : x;
}
struct Bounds {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  bool operator==(const Bounds&) const = default;
  bool exist() const { return *this != Bounds{}; }
};
struct MatrixBounds {
  Bounds in{};
  Bounds out{};
  bool operator==(const MatrixBounds&) const = default;
};

// logits = softcap * tanh(logits * scale / softcap), softcap 0: logits * scale.
struct LogitSpec {
  float scale = 1.0f;
  float softcap = 0.0f;
  bool operator==(const LogitSpec&) const = default;
};

// How the backend packs a weight.
enum class WeightRole : uint8_t { kEmbedding, kLinear, kEmbeddingAndLinear, kVector };

// The K/V block size: one pool for all layers, a block holds kBlockTokens positions of every layer.
inline constexpr int32_t kBlockTokens = 32;
// The memory of recurrent states: one slot holds the state of a sequence behind some row, all layers, in f32.
struct StateLayout {
  int32_t n_layers = 0;
  int64_t layer_floats = 0;  // state_floats() of the layer's spec
  int64_t slot_floats() const { return n_layers * layer_floats; }
  bool operator==(const StateLayout&) const = default;
};
struct KvHeads {
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;
  bool operator==(const KvHeads&) const = default;
};
struct KvLayout {
  int32_t n_layers = 0;  // that keep rows of their own
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;
  KvType type = KvType::kBf16;
  StateLayout state{};
  int32_t latent_dim = 0;        // > 0: values are as many first numbers of keys, and nothing else is kept
  std::vector<KvHeads> heads{};  // [n_layers] where layers differ, else empty
  bool operator==(const KvLayout&) const = default;

  KvHeads heads_of(int32_t layer) const {
    return heads.empty() ? KvHeads{n_kv_heads, head_dim} : heads[static_cast<size_t>(layer)];
  }
  int32_t max_head_dim() const;

  bool has_values() const { return latent_dim == 0; }
  int32_t n_planes() const { return has_values() ? 2 : 1; }
};

// Memory of a page: K, or V, of one head. Kernels may need more (they round widths up to 16).
int64_t kv_page_bytes(int32_t head_dim, KvType type);
// Memory of one block over all layers: 2 (1 without values) x layers x kv_heads x head_dim x block_tokens x bytes.
int64_t kv_block_bytes(const KvLayout& layout);
// Memory of one slot.
int64_t state_slot_bytes(const StateLayout& layout);
// What a block takes in a pool: as if there were one head more in all, where layers x heads are even (counted in heads
// of the first layer where layers differ). Pages of one head in successive blocks would else lie at distances that
// large powers of two divide, and share few sets of a cache.
int64_t kv_pool_block_bytes(const KvLayout& layout);

}  // namespace candor::backend
