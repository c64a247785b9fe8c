#pragma once
// What the kernels of attention take. Pages lie as kernels/attend.h says. Orders: docs/numerics.md, "Attention". Plain
// data: it is copied as bytes.

#include <cstddef>
#include <cstdint>

namespace candor::backend::cuda {

// Of a row of the step.
struct RowPlace {
  int32_t seq = 0;        // row of the block table
  int32_t position = 0;   // of the row in its sequence
  int32_t group_end = 0;  // it sees the tokens before this, or before its own end: 0 without a group
};

// Pages of one layer: those of head h and block b at base + b * block_bytes + k_offset + h * head_bytes.
struct PagePlaces {
  std::byte* base = nullptr;
  const int32_t* block_table = nullptr;  // [n_seqs, max_blocks]
  int64_t block_bytes = 0;
  int64_t k_offset = 0;
  int64_t v_offset = 0;    // as k_offset where values are the beginnings of keys
  int64_t head_bytes = 0;  // from one K/V head to the next
  int32_t max_blocks = 0;
  int32_t format = 0;        // kernels::KvFormat's number
  int32_t rotated_dims = 0;  // of kQ4
};

// k, v: [n_rows, n_kv_heads * head_dim]. A page is cleared where its first token is stored. Rows of a sequence stand
// one after another.
struct StorePagesArgs {
  PagePlaces pages{};
  const float* k = nullptr;
  const float* v = nullptr;  // nullptr: values are the beginnings of keys
  const RowPlace* rows = nullptr;
  int32_t n_rows = 0;
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;
};

// q: [n_rows, n_heads * head_dim], dst: [n_rows, n_heads * value_dim].
struct AttendRowsArgs {
  PagePlaces pages{};
  const float* q = nullptr;
  float* dst = nullptr;
  const RowPlace* rows = nullptr;
  const float* slopes = nullptr;  // [n_heads] of ALiBi, or nullptr
  const float* sinks = nullptr;   // [n_heads] or nullptr
  const float* biases = nullptr;  // [n_heads, 2 * bias_reach + 1] or nullptr
  int32_t n_rows = 0;
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t value_dim = 0;  // less than head_dim, and the beginning of the key, with a latent
  int32_t window_tokens = 0;
  int32_t chunk_tokens = 0;
  int32_t ahead_tokens = 0;
  int32_t bias_reach = 0;
  float scale = 0.0f;
  float softcap = 0.0f;
  bool is_latent = false;
};

// Heads of rows: [n_rows, n_heads * head_dim], in blocks of rotated_dims. src and dst may be the same.
struct RotateHeadsArgs {
  const float* src = nullptr;
  float* dst = nullptr;
  int32_t head_dim = 0;
  int32_t rotated_dims = 0;
};

// Consecutive rows of one sequence, which a block of threads takes together.
struct RowTile {
  int32_t first_row = 0;
  int32_t n_rows = 0;
  bool operator==(const RowTile&) const = default;
};

// A launch of attention: block (x, y, z) takes tile x and the heads of part y, of split z of those that the tile sees,
// or of all of them where the grid has one z. Places in shared memory are bytes.
struct AttendBlocksArgs {
  AttendRowsArgs rows{};
  const RowTile* tiles = nullptr;
  float* partials = nullptr;  // of splits, partial_floats each: [row][head][split % n_splits]; where z > 1
  int32_t partial_floats = 0;
  int32_t n_splits = 0;     // room for partials of a row and head
  int32_t n_queries = 0;    // of a block, for which there is room
  int32_t block_heads = 0;  // query heads of a block, all of one K/V head
  int32_t n_parts = 0;      // blocks for the query heads of a K/V head
  int32_t group_tiles = 0;  // key tiles at a time; attend_few alone
  int32_t weights_at = 0;
  int32_t outputs_at = 0;
  int32_t queries_at = 0;
  int32_t places_at = 0;
  int32_t sums_at = 0;    // attend_few alone
  int32_t keys_at = 0;    // stages of keys, of both in attend_tiles
  int32_t values_at = 0;  // attend_few alone
  int32_t words_at = 0;   // of codes alone: the weights in 16 bits
  int32_t scales_at = 0;  // of codes, attend_few alone: of keys
};

}  // namespace candor::backend::cuda
