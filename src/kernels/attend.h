#pragma once
// Attention over a paged K/V cache: softmax(q k^T) v of some rows of one sequence, with a running maximum and sum
// ("flash attention"). A page holds 32 consecutive tokens of one (layer, kv head), K and V apart:
//   K page: [2][Dp / 2][16] pairs (k[2i], k[2i+1]) of bf16: half, pair of dims, token
//   V page: [Dp / 16][16][16] pairs (v[2t][d], v[2t+1][d]) of bf16: group of dims, pair of tokens, dim
// with Dp = head_dim rounded up to 16: the right operands that AMX wants for QK^T and PV. Tokens of a page that were
// never stored are zeros (store_kv clears a page when it writes its first token), so that 0 * v stays 0.
// That is KvFormat::kBf16. kF32 keeps single numbers, K [2][Dp][16 tokens] and V [Dp / 16][32 tokens][16 dims]. kQ8 has
// the pairs of kBf16 as int8, after one f16 scale for each 32 dims of a token, [Dp / 32, rounded up][32 tokens].
// kQ4 has the scales of kQ8, then codes of 4 bits, two in a byte: dim d of 32 and, in the high nibble, dim d + 16 stand
// where kQ8 would have dim d of half as many dims. Its heads are rotated in blocks of rotated_dims.
// Latent attention (DeepSeek-AI, "DeepSeek-V2", 2024) has K pages alone: a token's value is the first dims of its key,
// and a tile's V pages are made from its K pages when it is computed, so that they hold what stored ones would.
// Order of operations: numerics.md, "Attention". Bits of an output depend on its own q, its position and the K/V rows
// before it, never on what is processed beside it. Kernels keep to their arguments: no allocation, no threads.

#include <cstddef>
#include <cstdint>

namespace candor::kernels {

inline constexpr int32_t kPageTokens = 32;
inline constexpr int32_t kKeyTile = 128;       // tokens between updates of the running maximum; aligned to position 0
inline constexpr int32_t kSplitTokens = 2048;  // a context is cut here, always; a multiple of kKeyTile

enum class KvFormat : uint8_t { kBf16, kF32, kQ8, kQ4 };
inline constexpr int32_t kKvScaleDims = 32;  // dims of a token that share a scale of kQ8, of kQ4

// Dims of a page of kQ4, with those that only fill it.
constexpr int32_t kv_q4_dims(int32_t head_dim) {
  return (head_dim + 31) / 32 * 32;
}

inline constexpr int32_t kMostRotatedDims = 256;
// Dims of kQ4 that are rotated together: the largest power of two that divides the head, and the latent where values
// are one; 0, nothing is rotated, where that is below 16.
constexpr int32_t rotated_dims(int32_t head_dim, int32_t latent_dim) {
  const int32_t both = head_dim | latent_dim;
  const int32_t block = both & -both;
  return block < 16 ? 0 : block < kMostRotatedDims ? block : kMostRotatedDims;
}

// Bytes of a K page, a multiple of 64; a V page has the same size.
constexpr size_t kv_page_bytes(int32_t head_dim, KvFormat format = KvFormat::kBf16) {
  const auto elements = static_cast<size_t>((head_dim + 15) / 16 * 16) * kPageTokens;
  if (format == KvFormat::kF32) return elements * 4;
  if (format == KvFormat::kBf16) return elements * 2;
  const size_t scales = static_cast<size_t>((head_dim + kKvScaleDims - 1) / kKvScaleDims) * kPageTokens * 2;
  if (format == KvFormat::kQ4) return scales + static_cast<size_t>(kv_q4_dims(head_dim)) * kPageTokens / 2;
  return scales + elements;
}

// The pages of one sequence, one layer, one kv head: those of tokens [32 j, 32 j + 32) stand at
// base + block_table[j - first_page] * block_bytes + {k_offset, v_offset}. Pages are 64-byte aligned.
struct KvPages {
  std::byte* base = nullptr;
  const int32_t* block_table = nullptr;
  size_t block_bytes = 0;
  size_t k_offset = 0;
  size_t v_offset = 0;  // as k_offset where values are the beginnings of keys
  KvFormat format = KvFormat::kBf16;
  int32_t first_page = 0;    // not 0 inside kernels alone
  int32_t rotated_dims = 0;  // of kQ4
};

struct StoreKvArgs {
  KvPages pages;
  const float* k = nullptr;  // row i stands at k + i * stride: [head_dim] f32, rotated
  const float* v = nullptr;  // nullptr: values are the beginnings of keys
  int64_t stride = 0;        // floats between rows, of both
  int32_t head_dim = 0;
  int32_t first_position = 0;
  int32_t n_rows = 0;
};

struct AttendArgs {
  KvPages pages;
  const float* q = nullptr;  // query (row i, head g) stands at q + i * q_stride + g * head_dim: rotated, not scaled
  int64_t q_stride = 0;
  float* dst = nullptr;  // same arrangement, heads value_dim() apart; overwritten
  int64_t dst_stride = 0;
  int32_t n_rows = 0;         // consecutive positions from first_position
  int32_t n_group_heads = 1;  // query heads that share this kv head
  int32_t head_dim = 0;
  int32_t first_position = 0;  // row i, at p = first_position + i, sees positions [oldest_seen(p), seen_end(p))
  int32_t window_tokens = 0;
  float scale = 1.0f;
  float softcap = 0.0f;           // score = softcap * tanh(score / softcap); 0 = none
  const float* slopes = nullptr;  // [n_group_heads]: score of position t seen from p -= slope * |p - t|; nullptr = none
  const float* sinks = nullptr;   // [n_group_heads]: one more score in each softmax, of no token; nullptr = none
  int32_t latent_dim = 0;         // values are the first latent_dim dims of keys; 0: they have pages of their own
  int32_t chunk_tokens = 0;       // > 0, and no window: from the last multiple of this on
  int32_t group_end = 0;          // all rows see the tokens before this, even those behind them,
  int32_t ahead_tokens = 0;       // but only as far as p + this, where it is > 0
  // [n_group_heads, 2 * bias_reach + 1]: score of position t seen from p += that of t - p, kept within bias_reach;
  // nullptr = none
  const float* biases = nullptr;
  int32_t bias_reach = 0;
  // Of attend_split alone, where rows of several sequences see the same pages first and then each its own:
  const int32_t* q_rows = nullptr;  // row i's queries stand at q + q_rows[i] * q_stride; nullptr: q_rows[i] = i
  int32_t resume_token = 0;         // the partial holds what comes before; a multiple of kKeyTile
  int32_t end_token = 0;            // tokens from here on are left out; a multiple of kKeyTile, 0: none are
  int32_t value_dim() const { return latent_dim > 0 ? latent_dim : head_dim; }
};

// Never falls from one position to the next.
constexpr int32_t oldest_seen(const AttendArgs& a, int32_t position) {
  if (a.chunk_tokens > 0) return position - position % a.chunk_tokens;
  const int32_t oldest = a.window_tokens == 0 ? 0 : position - a.window_tokens + 1;
  return oldest < 0 ? 0 : oldest;
}

constexpr int32_t seen_end(const AttendArgs& a, int32_t position) {
  if (position >= a.group_end) return position + 1;
  const int32_t reached = position + a.ahead_tokens;
  return a.ahead_tokens > 0 && reached < a.group_end ? reached : a.group_end;
}

// Splits that a row at `position` looks at: [first, end). Splits before `first` are outside its window.
struct SplitRange {
  int32_t first = 0;
  int32_t end = 0;
};
constexpr SplitRange splits_of_rows(const AttendArgs& a) {
  return {oldest_seen(a, a.first_position) / kSplitTokens,
          (seen_end(a, a.first_position + a.n_rows - 1) - 1) / kSplitTokens + 1};
}

// Working memory of attend: does not grow with the context. Aligned to 64 bytes.
size_t attend_scratch_bytes(int32_t head_dim);

// A split's result for n_rows * n_group_heads queries, one after another; for attend_split and attend_combine.
size_t attend_partial_bytes(int32_t n_queries, int32_t head_dim);

}  // namespace candor::kernels
