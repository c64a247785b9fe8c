#pragma once
// Pages of int8 on their way into stages (attend_pages.h): codes and scales as they are. Included behind language.h.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_pages.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::attention {

// Bytes of an int8 page before its codes.
CANDOR_DEVICE int64_t codes_at(int32_t head_dim) {
  return int64_t{up_to(head_dim, kernels::kKvScaleDims)} * kPageTokens * 2;
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
    const std::byte* from = keys.at(page) + codes_at(head_dim) + (piece % 2 * dp + d) * 16;
    const int32_t word = piece * kCodePieceWords + lane_number() * kCodeRowWords;
    for (int32_t i = 0; i < stages.n && d + i * kStageDims < dp; ++i) {
      copy_quarter(stages.to, word + i * kCodeStageWords, from + i * kStageDims * 16);
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
    copy_quarter(to, piece * kCodePieceWords + lane_number() * kCodeRowWords,
                 values.at(page) + codes_at(head_dim) + (group * kPageTokens + lane_number()) * 16);
  }
  stage_scales(head_dim, to, values, of);
}

template <>
CANDOR_DEVICE void stage_latent<Q8Pages>(int32_t head_dim, const Stage& to, const SeenPages& keys, const ValuePages& of,
                                         int32_t n_dims) {
  const std::byte* page = keys.at(of.page);
  constexpr int32_t kHalfRows = kChunkDims / 32;
  for (int32_t i = warp_number(); i < 2 * kHalfRows; i += warp_count()) {
    const int32_t d = of.chunk * kChunkDims + i % kHalfRows * 32 + lane_number();
    if (d / 2 * 2 >= n_dims) continue;
    copy_quarter(to, (i * 32 + lane_number()) * kCodeRowWords,
                 page + codes_at(head_dim) + (i / kHalfRows * padded_dim(head_dim) + d) * 16);
  }
  stage_scales(head_dim, to, keys, of);
}

}  // namespace candor::backend::cuda::attention
