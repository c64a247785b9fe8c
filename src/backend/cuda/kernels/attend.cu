// Attention over pages of K and V. Orders: docs/numerics.md, "Attention".

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_block.h"
#include "backend/cuda/kernels/attend_rules.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/language.h"
#include "kernels/attend.h"
#include "kernels/kv_codes.h"

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
    if (format == KvFormat::kF32) {
      return is_value ? (d / 16 * kPageTokens + slot) * 16 + d % 16 : (slot / 16 * dp + d) * 16 + slot % 16;
    }
    return is_value ? (d / 16 * kPageTokens + slot / 2 * 2) * 16 + d % 16 * 2 + slot % 2
                    : (slot / 16 * dp + d / 2 * 2) * 16 + slot % 16 * 2 + d % 2;
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

// The code of the nearest of 16 levels.
CANDOR_DEVICE uint32_t q4_code_of(float x, float scale) {
  if (!(scale > 0.0f) || scale > 65504.0f) return 0;
  const auto level = static_cast<uint32_t>(kernels::q4_level_of(div_rn(x < 0.0f ? -x : x, scale)));
  return x < 0.0f ? level + 8 : level;
}

// By a warp, dim d of its 32 by each lane: its scale, then its code.
CANDOR_DEVICE void store_codes(std::byte* page, const PagePlace& place, float x, int32_t slot, int32_t d) {
  const uint16_t scale = scale_of(x);
  const int32_t group = d / kernels::kKvScaleDims;
  if (lane() == 0) reinterpret_cast<uint16_t*>(page)[group * kPageTokens + slot] = scale;
  std::byte* codes = page + int64_t{up_to(place.dp, kernels::kKvScaleDims)} * kPageTokens * 2;
  if (place.format == KvFormat::kQ8) {
    if (d < place.dp) reinterpret_cast<int8_t*>(codes)[place.of(slot, d)] = code_of(x, half_to_float(scale));
    return;
  }
  const uint32_t code = q4_code_of(x, half_to_float(scale));
  const uint32_t high = shuffle_xor(code, 16);
  const PagePlace pairs{kernels::kv_q4_dims(place.dp) / 2, place.is_value, place.format};
  if (lane() < 16) codes[pairs.of(slot, group * 16 + d % 16)] = static_cast<std::byte>(code | high << 4);
}

// Stores a row's numbers in its slot. By all threads; lanes have 32 dims.
template <class Numbers>
CANDOR_DEVICE void store_slot(std::byte* page, const PagePlace& place, const Numbers& numbers, int32_t slot) {
  for (int32_t group = warp(); group * 32 < place.dp; group += n_warps()) {
    const int32_t d = group * 32 + lane();
    const float x = numbers.of(d);
    switch (place.format) {
      case KvFormat::kBf16:
        if (d < place.dp) reinterpret_cast<uint16_t*>(page)[place.of(slot, d)] = float_to_bf16(x);
        break;
      case KvFormat::kF32:
        if (d < place.dp) reinterpret_cast<float*>(page)[place.of(slot, d)] = x;
        break;
      case KvFormat::kQ8:
      case KvFormat::kQ4:
        store_codes(page, place, x, slot, d);
        break;
    }
  }
}
// Zeros behind its head; all of them where that is 0 wide.
struct Row {
  const float* src;
  int32_t head_dim;
  CANDOR_DEVICE float of(int32_t d) const { return d < head_dim ? src[d] : 0.0f; }
};
struct RotatedRow {
  Shared<float> numbers;
  int32_t head_dim;
  CANDOR_DEVICE float of(int32_t d) const { return d < head_dim ? static_cast<float>(numbers[d]) : 0.0f; }
};

// Dim d, of its 16 numbers times the Hadamard matrix.
CANDOR_DEVICE float rotate_16(Shared<float> x, int32_t d) {
  float y = 0.0f;
  CANDOR_UNROLL
  for (int32_t j = 0; j < 16; ++j) {
    const int32_t both = d % 16 & j;
    const bool is_odd = ((both ^ both >> 1 ^ both >> 2 ^ both >> 3) & 1) != 0;
    y = fma_rn(is_odd ? -1.0f : 1.0f, x[d / 16 * 16 + j], y);
  }
  return y;
}

// By all threads: a head's numbers in shared memory, which has room for twice as many. Its end is a barrier.
CANDOR_DEVICE Shared<float> rotate(const float* src, int32_t head_dim, int32_t rotated_dims) {
  Shared<float> from = shared<float>(0);
  Shared<float> to = shared<float>(static_cast<size_t>(head_dim) * sizeof(float));
  for (int32_t d = thread(); d < head_dim; d += n_threads()) from[d] = src[d];
  sync_block();
  for (int32_t d = thread(); d < head_dim; d += n_threads()) to[d] = rotate_16(from, d);
  sync_block();
  for (int32_t stride = 16; stride < rotated_dims; stride *= 2) {
    const Shared<float> last = to;
    to = from;
    from = last;
    for (int32_t d = thread(); d < head_dim; d += n_threads()) {
      const float own = from[d];
      const float other = from[d ^ stride];
      to[d] = (d & stride) == 0 ? add_rn(own, other) : sub_rn(other, own);
    }
    sync_block();
  }
  const float norm = kernels::rotation_norm(rotated_dims);
  for (int32_t d = thread(); d < head_dim; d += n_threads()) from[d] = mul_rn(to[d], norm);
  sync_block();
  return from;
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
  if (a.pages.rotated_dims > 0) {
    store_slot(page, place, RotatedRow{rotate(src, a.head_dim, a.pages.rotated_dims), a.head_dim}, slot);
  } else {
    store_slot(page, place, Row{src, a.head_dim}, slot);
  }
  if (slot > 0) return;
  for (int32_t i = stored_slots(a, row); i < kPageTokens; ++i) store_slot(page, place, Row{nullptr, 0}, i);
}

}  // namespace attention

// Block (row, K/V head, K or V).
CANDOR_KERNEL(store_pages, StorePagesArgs) {
  attention::store_row(args, block_x(), block_y(), block_z() != 0);
}

// Block (row, head).
CANDOR_KERNEL(rotate_heads, RotateHeadsArgs) {
  const int64_t head = (int64_t{block_x()} * n_blocks_y() + block_y()) * args.head_dim;
  const Shared<float> rotated = attention::rotate(args.src + head, args.head_dim, args.rotated_dims);
  for (int32_t d = thread(); d < args.head_dim; d += n_threads()) args.dst[head + d] = rotated[d];
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
