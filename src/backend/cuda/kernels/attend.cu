// Attention over pages of K and V. Orders: docs/numerics.md, "Attention".

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_block.h"
#include "backend/cuda/kernels/attend_rules.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/language.h"
#include "kernels/attend.h"

namespace candor::backend::cuda {

namespace attention {

using kernels::KvFormat;

// Places of a page, as kernels/attend.h describes them, in elements of its format.
struct PagePlace {
  int32_t dp;
  bool is_value;
  KvFormat format;

  CANDOR_DEVICE int64_t of(int32_t slot, int32_t d) const {
    if (format == KvFormat::kBf16) {
      return is_value ? ((d / 16 * 16 + slot / 2) * 16 + d % 16) * 2 + slot % 2
                      : ((slot / 16 * dp + d / 2 * 2) * 8 + slot % 16) * 2 + d % 2;
    }
    return is_value ? (d / 16 * kPageTokens + slot) * 16 + d % 16 : (slot / 16 * dp + d) * 16 + slot % 16;
  }
};

// The f16 scale of 32 dims, of each of which a lane has one.
CANDOR_DEVICE uint16_t scale_of(float x) {
  uint32_t greatest = bits_of(x) & 0x7fffffffu;
  CANDOR_UNROLL
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    const uint32_t other = shuffle_xor(greatest, mask);
    greatest = other > greatest ? other : greatest;
  }
  return float_to_half(div_rn(float_of(greatest), 127.0f));
}

CANDOR_DEVICE int8_t code_of(float x, float scale) {
  constexpr float kRound = 12582912.0f;
  if (!(scale > 0.0f) || scale > 65504.0f) return 0;
  const float ratio = div_rn(x, scale);
  const float capped = ratio < -127.0f ? -127.0f : ratio > 127.0f ? 127.0f : ratio;
  return static_cast<int8_t>(to_int_rn(sub_rn(add_rn(capped, kRound), kRound)));
}

// Stores a row's numbers in its slot, or zeros in another one: src is nullptr. By all threads; lanes have 32 dims.
CANDOR_DEVICE void store_slot(std::byte* page, const PagePlace& place, const float* src, int32_t head_dim,
                              int32_t slot) {
  const int32_t n_groups = up_to(head_dim, kernels::kKvScaleDims);
  for (int32_t group = warp(); group * 32 < place.dp; group += n_warps()) {
    const int32_t d = group * 32 + lane();
    const float x = src != nullptr && d < head_dim ? src[d] : 0.0f;
    const int64_t at = place.of(slot, d);
    switch (place.format) {
      case KvFormat::kBf16:
        if (d < place.dp) reinterpret_cast<uint16_t*>(page)[at] = float_to_bf16(x);
        break;
      case KvFormat::kF32:
        if (d < place.dp) reinterpret_cast<float*>(page)[at] = x;
        break;
      case KvFormat::kQ8:
        const uint16_t scale = src == nullptr ? uint16_t{0} : scale_of(x);
        if (lane() == 0) reinterpret_cast<uint16_t*>(page)[group * kPageTokens + slot] = scale;
        if (d < place.dp) {
          reinterpret_cast<int8_t*>(page)[n_groups * kPageTokens * 2 + at] = code_of(x, half_to_float(scale));
        }
        break;
    }
  }
}

// The first slot of a page is stored by this row; how many are stored by this step's rows from it on.
CANDOR_DEVICE int32_t stored_slots(const StorePagesArgs& a, int32_t row) {
  const int32_t i = row + static_cast<int32_t>(lane());
  const uint32_t is_next = ballot(i < a.n_rows && a.rows[i].seq == a.rows[row].seq &&
                                  a.rows[i].position == a.rows[row].position + static_cast<int32_t>(lane()));
  int32_t n = 0;
  while (n < kPageTokens && (is_next >> n & 1) != 0) ++n;
  return n;
}

CANDOR_DEVICE void store_row(const StorePagesArgs& a, int32_t row, int32_t head, bool is_value) {
  const int32_t position = a.rows[row].position;
  const int64_t block = a.pages.block_table[int64_t{a.rows[row].seq} * a.pages.max_blocks + position / kPageTokens];
  std::byte* page = a.pages.base + block * a.pages.block_bytes + (is_value ? a.pages.v_offset : a.pages.k_offset) +
                    head * a.pages.head_bytes;
  const float* src = (is_value ? a.v : a.k) + (int64_t{row} * a.n_kv_heads + head) * a.head_dim;
  const PagePlace place{padded_dim(a.head_dim), is_value, static_cast<KvFormat>(a.pages.format)};
  const int32_t slot = position % kPageTokens;
  store_slot(page, place, src, a.head_dim, slot);
  if (slot > 0) return;
  for (int32_t i = stored_slots(a, row); i < kPageTokens; ++i) store_slot(page, place, nullptr, a.head_dim, i);
}

}  // namespace attention

// Block (row, K/V head, K or V).
CANDOR_KERNEL(store_pages, StorePagesArgs) {
  attention::store_row(args, block_x(), block_y(), block_z() != 0);
}

// Joins the splits of a row and head: block (tile, head, row of the tile).
CANDOR_KERNEL(attend_combine, AttendBlocksArgs) {
  using attention::Shares;
  const AttendRowsArgs& a = args.rows;
  const RowTile tile = args.tiles[block_x()];
  if (static_cast<int32_t>(block_z()) >= tile.n_rows) return;
  const auto row = tile.first_row + static_cast<int32_t>(block_z());
  const auto head = static_cast<int32_t>(block_y());
  const attention::TokenRange splits =
      attention::covered(attention::seen_tokens(a, a.rows[row]), attention::kSplitTokens);
  for (int32_t d = thread(); d < a.value_dim; d += n_threads()) {
    attention::Total total;
    float output = 0.0f;
    for (int32_t split = splits.begin; split < splits.end; ++split) {
      const float* partial = attention::partial_of(args, row, head, split);
      const Shares shares = attention::add_split(total, partial[a.value_dim], partial[a.value_dim + 1]);
      output = shares.join(output, partial[d]);
    }
    attention::output_of(a, row, head)[d] = attention::finish_of(a, head, total).of(output);
  }
}

}  // namespace candor::backend::cuda
