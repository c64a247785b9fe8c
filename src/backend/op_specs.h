#pragma once
// The parameters of operations (rotary positions, attention, norms, K/V layout): plain, comparable, printable data.
// Rotary scalings: linear (Chen et al., "Extending context window via position interpolation", 2023), YaRN (Peng et
// al., 2023, "NTK by parts") and the rule of Llama 3.1's model card.

#include <cstdint>
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
  bool operator==(const RopeSpec&) const = default;
};

// [n_dims / 2]: radians that pair i turns with each position, scaling and frequency factors included. Position p turns
// it by p times this; cos and sin are then multiplied by attention_factor. Computed in double.
std::vector<double> rope_frequencies(const RopeSpec& spec);

struct AttnSpec {
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;  // divides n_heads
  int32_t head_dim = 0;
  float scale = 0.0f;           // of q.k before softmax
  int32_t window_tokens = 0;    // 0 = every earlier position; else position p sees (p - window, p]
  float softcap = 0.0f;         // score = softcap * tanh(score / softcap); 0 = as it is
  float max_alibi_bias = 0.0f;  // score of position t seen from p -= slope * (p - t), alibi_slopes(); 0 = none
  RopeSpec rope;
  bool has_sinks = false;  // each head's softmax has one more score, a weight, of no token
  bool operator==(const AttnSpec&) const = default;
};

// [n_heads]: Press et al., "Train short, test long", 2022. For a power of two n of heads head i has 2^(-max_bias * (i +
// 1) / n); other counts take every second slope of twice the next lower power for the heads past it.
std::vector<float> alibi_slopes(int32_t n_heads, float max_bias);

// What an activation makes of x, or of a gate's x and the u that it gates (times u, where nothing else is said).
// kSilu: x / (1 + e^-x). kGelu: the tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
// kGeluErf: the exact form, 0.5 x (1 + erf(x / sqrt(2))). kRelu: max(x, 0). kReluSquared: its square.
// kClampedSilu, of gates only: g / (1 + e^(-1.702 g)) * (clamp(u, -7, 7) + 1) with g = min(x, 7).
enum class GateKind : uint8_t { kSilu, kGelu, kGeluErf, kRelu, kReluSquared, kClampedSilu };
inline constexpr int kGateKinds = 6;

// A mixture of experts: which experts a row goes to and how their outputs are added (backend/routing.h).
struct MoeSpec {
  int32_t n_experts = 0;    // 0 = an ordinary feed-forward
  int32_t n_used = 0;       // experts of a row
  bool renormalise = true;  // weights are the softmax over the chosen experts; false: over all
  bool operator==(const MoeSpec&) const = default;
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
struct KvLayout {
  int32_t n_layers = 0;
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;
  KvType type = KvType::kBf16;
  bool operator==(const KvLayout&) const = default;
};

// Memory of one block over all layers: 2 x layers x kv_heads x head_dim x block_tokens x bytes.
int64_t kv_block_bytes(const KvLayout& layout);
// What a block takes in a pool: as if there were one head more in all, where layers x heads are even. Pages of one head
// in successive blocks would else lie at distances that large powers of two divide, and share few sets of a cache.
int64_t kv_pool_block_bytes(const KvLayout& layout);

}  // namespace candor::backend
