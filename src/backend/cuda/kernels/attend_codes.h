#pragma once
// Pages of int8 on their way into stages (attend_pages.h): codes and scales as they are. Codes of 4 bits become int8 on
// the way. Included behind language.h.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_pages.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/language.h"
#include "backend/cuda/kernels/unit_planes.h"
#include "kernels/kv_codes.h"

namespace candor::backend::cuda::attention {

// Bytes of an int8 page before its codes.
CANDOR_DEVICE int64_t codes_at(int32_t head_dim) {
  return int64_t{up_to(head_dim, kernels::kKvScaleDims)} * kPageTokens * 2;
}

// 16 codes of a row of an int8 page: from the row itself, or from one of pairs.
struct CodeRow {
  const std::byte* page;
  int32_t row;  // of an int8 page
  bool has_pairs;
  bool is_high;

  CANDOR_DEVICE void copy(int32_t head_dim, const Stage& to, int32_t word) const {
    const std::byte* from = page + codes_at(head_dim) + row * 16;
    if (!has_pairs) return copy_quarter(to, word, from);
    const uint32_t shift = is_high ? 4 : 0;
    const Uint4 pairs = load16(from);
    const ByteTable table = byte_table_of(kernels::kQ4Levels);
    const auto levels = [&](uint32_t w) { return look_up_bytes(table, w >> shift & 0x0f0f0f0fu); };
    store16(to.words, to.at + static_cast<uint32_t>(word),
            Uint4{levels(pairs.x), levels(pairs.y), levels(pairs.z), levels(pairs.w)});
  }
};
// Of dim d of the page's half, of a token and 16 dims of values.
CANDOR_DEVICE CodeRow key_row(int32_t head_dim, const SeenPages& keys, int32_t page, int32_t half, int32_t d) {
  if (!keys.has_pairs) return {keys.at(page), half * padded_dim(head_dim) + d, false, false};
  const int32_t row = half * (kernels::kv_q4_dims(head_dim) / 2) + d / 32 * 16 + d % 16;
  return {keys.at(page), row, true, d % 32 >= 16};
}
CANDOR_DEVICE CodeRow value_row(const SeenPages& values, int32_t page, int32_t group, int32_t token) {
  if (!values.has_pairs) return {values.at(page), group * kPageTokens + token, false, false};
  return {values.at(page), group / 2 * kPageTokens + token, true, group % 2 != 0};
}

// By the first 16 threads: of each pair of pieces the scales of its 32 dims.
CANDOR_DEVICE void stage_scales(int32_t head_dim, const Stage& to, const SeenPages& pages, const ValuePages& of) {
  const auto i = static_cast<int32_t>(thread());
  if (i >= 16) return;
  const int32_t piece = i / 4 * 2;
  const int32_t page = of.page + piece / of.page_pieces();
  const int32_t group = of.group_of(piece, head_dim);
  if (page >= pages.end || group < 0) return;
  copy_quarter(to, kCodeScalesAt + 4 * i, pages.at(page) + group / 2 * kPageTokens * 2 + i % 4 * 16);
}

template <>
CANDOR_DEVICE void stage_keys<Q8Pages>(int32_t head_dim, const KeyStages& stages, const SeenPages& keys,
                                       int32_t first_page) {
  const int32_t dp = padded_dim(head_dim);
  const int32_t d = stages.d0 + lane_number();
  for (int32_t piece = warp_number(); piece < kPieces; piece += warp_count()) {
    const int32_t page = first_page + piece / 2;
    if (page < keys.begin || page >= keys.end) continue;
    const int32_t word = piece * kCodePieceWords + lane_number() * kCodeRowWords;
    for (int32_t i = 0; i < stages.n && d + i * kStageDims < dp; ++i) {
      const CodeRow row = key_row(head_dim, keys, page, piece % 2, d + i * kStageDims);
      row.copy(head_dim, stages.to, word + i * kCodeStageWords);
    }
  }
  const auto scale = static_cast<int32_t>(thread());
  const int32_t page = first_page + scale / 4;
  if (scale >= 16 || page < keys.begin || page >= keys.end) return;
  const std::byte* from = keys.at(page) + stages.d0 / kernels::kKvScaleDims * kPageTokens * 2 + scale % 4 * 16;
  for (int32_t i = 0; i < stages.n; ++i) {
    copy_quarter(stages.to, kCodeScalesAt + 4 * scale + i * kCodeStageWords, from + i * kPageTokens * 2);
  }
}

template <>
CANDOR_DEVICE void stage_values<Q8Pages>(int32_t head_dim, const Stage& to, const SeenPages& values,
                                         const ValuePages& of) {
  for (int32_t piece = warp_number(); piece < kPieces; piece += warp_count()) {
    const int32_t page = of.page + piece / of.page_pieces();
    const int32_t group = of.group_of(piece, head_dim);
    if (page >= values.end || group < 0) continue;
    const CodeRow row = value_row(values, page, group, lane_number());
    row.copy(head_dim, to, piece * kCodePieceWords + lane_number() * kCodeRowWords);
  }
  stage_scales(head_dim, to, values, of);
}

template <>
CANDOR_DEVICE void stage_latent<Q8Pages>(int32_t head_dim, const Stage& to, const SeenPages& keys, const ValuePages& of,
                                         int32_t n_dims) {
  constexpr int32_t kHalfRows = kChunkDims / 32;
  for (int32_t i = warp_number(); i < 2 * kHalfRows; i += warp_count()) {
    const int32_t d = of.chunk * kChunkDims + i % kHalfRows * 32 + lane_number();
    if (d / 2 * 2 >= n_dims) continue;
    const CodeRow row = key_row(head_dim, keys, of.page, i / kHalfRows, d);
    row.copy(head_dim, to, (i * 32 + lane_number()) * kCodeRowWords);
  }
  stage_scales(head_dim, to, keys, of);
}

}  // namespace candor::backend::cuda::attention
