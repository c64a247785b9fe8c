#pragma once
// Pages of K and V (kernels/attend.h) on their way into the stages of a block's shared memory (attend_stages.h), behind
// the threads' backs. Included behind language.h.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::attention {

// Formats: how a stage holds them, and how it is multiplied where many warps read it.
struct Bf16Pages {
  using Rows = PairRows;
  using Staged = PairRows;
};
struct F32Pages {
  using Rows = WideRows;
  using Staged = WideRows;
};
struct Q8Pages {
  using Rows = PairRows;
  using Staged = CodeRows;
};
template <class Pages>
constexpr bool kIsQ8 = false;
template <>
inline constexpr bool kIsQ8<Q8Pages> = true;

// Words of a stage, and of one of values that no head fills.
template <class Pages>
constexpr int32_t staged_words() {
  return kIsQ8<Pages> ? kCodeStageWords : stage_words(Pages::Rows::kPer);
}
template <class Pages>
constexpr int32_t staged_value_words(int32_t head_dim) {
  return kIsQ8<Pages> ? kCodeStageWords : value_stage_words(head_dim, Pages::Rows::kPer);
}

// The pages of one sequence and K/V head: [begin, end) of them are wanted.
struct SeenPages {
  const std::byte* base;
  const int32_t* blocks;
  int64_t block_bytes;
  int32_t begin;
  int32_t end;
  CANDOR_DEVICE const std::byte* at(int32_t page) const { return base + blocks[page] * block_bytes; }
};

CANDOR_DEVICE void copy_quarter(const Stage& to, int32_t word, const std::byte* from) {
  copy_async16(to.words, to.at + static_cast<uint32_t>(word), from);
}

// Which quarters a thread copies, of stages of 64-byte rows: of unit after unit, 16 rows each, one. A block has whole
// units of threads.
struct QuarterPlace {
  int32_t c;
  int32_t row;  // of a unit
  int32_t first_unit;
  int32_t n_units;  // of the block
};
CANDOR_DEVICE QuarterPlace quarter_place() {
  const auto i = static_cast<int32_t>(thread());
  return {i % 4, i / 4 % 16, i / kUnitThreads, static_cast<int32_t>(n_threads()) / kUnitThreads};
}
CANDOR_DEVICE int32_t warp_number() {
  return static_cast<int32_t>(warp());
}
CANDOR_DEVICE int32_t warp_count() {
  return static_cast<int32_t>(n_warps());
}
CANDOR_DEVICE int32_t lane_number() {
  return static_cast<int32_t>(lane());
}

// Bytes of an int8 page before its codes.
CANDOR_DEVICE int64_t codes_at(int32_t head_dim) {
  return int64_t{up_to(head_dim, kernels::kKvScaleDims)} * kPageTokens * 2;
}

// By the first 16 threads: scales of 4 groups of an int8 page.
CANDOR_DEVICE void stage_scales(int32_t head_dim, const Stage& to, const std::byte* page, int32_t first_group) {
  const auto i = static_cast<int32_t>(thread());
  const int32_t group = first_group + i / 4;
  if (i >= 16 || group >= up_to(head_dim, kernels::kKvScaleDims)) return;
  copy_quarter(to, kCodeScalesAt + 4 * i, page + group * kPageTokens * 2 + i % 4 * 16);
}

// Stages of keys, one after another: of n times kStageDims dims from d0 on.
struct KeyStages {
  Stage to;
  int32_t d0;
  int32_t n;
};

// By all threads: keys of the tile whose first page is first_page.
template <class Pages>
CANDOR_DEVICE void stage_keys(int32_t head_dim, const KeyStages& stages, const SeenPages& keys, int32_t first_page) {
  constexpr int32_t kPer = Pages::Rows::kPer;
  constexpr int32_t kRows = kStageDims / kPer;
  constexpr int32_t kPieceUnits = kRows / 16;
  const int32_t dp = padded_dim(head_dim);
  const QuarterPlace place = quarter_place();
  for (int32_t unit = place.first_unit; unit < kPieces * kPieceUnits; unit += place.n_units) {
    const int32_t row = unit % kPieceUnits * 16 + place.row;
    const int32_t piece = unit / kPieceUnits;
    const int32_t page = first_page + piece / 2;
    if (page < keys.begin || page >= keys.end) continue;
    const std::byte* from = keys.at(page) + ((piece % 2 * dp + stages.d0) / kPer + row) * 64 + place.c * 16;
    const int32_t word = piece * piece_words(kPer) + row * kRowWords + place.c * 4;
    for (int32_t i = 0; i < stages.n; ++i) {
      if (stages.d0 + i * kStageDims + row * kPer >= dp) break;
      copy_quarter(stages.to, word + i * staged_words<Pages>(), from + i * kRows * 64);
    }
  }
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

// By all threads: values of a page, of dims from chunk * kChunkDims on.
template <class Pages>
CANDOR_DEVICE void stage_values(int32_t head_dim, const Stage& to, const std::byte* page, int32_t chunk) {
  constexpr int32_t kPer = Pages::Rows::kPer;
  constexpr int32_t kPieceUnits = kPageTokens / kPer / 16;
  const int32_t left = padded_dim(head_dim) / 16 - chunk * kPieces;
  const int32_t n = (left < kPieces ? left : kPieces) * kPieceUnits;
  const QuarterPlace place = quarter_place();
  const std::byte* from = page + (chunk * kPieces * kPieceUnits * 16 + place.row) * 64 + place.c * 16;
  for (int32_t unit = place.first_unit; unit < n; unit += place.n_units) {
    const int32_t row = unit % kPieceUnits * 16 + place.row;
    copy_quarter(to, unit / kPieceUnits * piece_words(kPer) + row * kRowWords + place.c * 4, from + unit * 1024);
  }
}
template <>
CANDOR_DEVICE void stage_values<Q8Pages>(int32_t head_dim, const Stage& to, const std::byte* page, int32_t chunk) {
  const int32_t left = padded_dim(head_dim) / 16 - chunk * kPieces;
  const std::byte* from = page + codes_at(head_dim) + (chunk * kPieces * kPageTokens + lane_number()) * 16;
  for (int32_t piece = warp_number(); piece < (left < kPieces ? left : kPieces); piece += warp_count()) {
    copy_quarter(to, piece * kCodePieceWords + lane_number() * kCodeRowWords, from + piece * kPageTokens * 16);
  }
  stage_scales(head_dim, to, page, chunk * 4);
}

// By all threads: the same from a key page. n_dims: of a value.
template <class Pages>
CANDOR_DEVICE void stage_latent(int32_t head_dim, const Stage& to, const std::byte* page, int32_t chunk,
                                int32_t n_dims) {
  constexpr int32_t kPer = Pages::Rows::kPer;
  constexpr int32_t kHalfUnits = kChunkDims / kPer / 16;
  const QuarterPlace place = quarter_place();
  for (int32_t unit = place.first_unit; unit < 2 * kHalfUnits; unit += place.n_units) {
    const int32_t row = unit % kHalfUnits * 16 + place.row;
    if (chunk * kChunkDims + row * kPer >= n_dims) continue;
    const int32_t from = (unit / kHalfUnits * padded_dim(head_dim) + chunk * kChunkDims) / kPer + row;
    const uint32_t word = latent_word<typename Pages::Rows>(static_cast<uint32_t>(unit / kHalfUnits),
                                                            static_cast<uint32_t>(row), static_cast<uint32_t>(place.c));
    copy_quarter(to, static_cast<int32_t>(word), page + from * 64 + place.c * 16);
  }
}
template <>
CANDOR_DEVICE void stage_latent<Q8Pages>(int32_t head_dim, const Stage& to, const std::byte* page, int32_t chunk,
                                         int32_t n_dims) {
  constexpr int32_t kHalfRows = kChunkDims / 32;
  for (int32_t i = warp_number(); i < 2 * kHalfRows; i += warp_count()) {
    const int32_t d = chunk * kChunkDims + i % kHalfRows * 32 + lane_number();
    if (d / 2 * 2 >= n_dims) continue;
    copy_quarter(to, (i * 32 + lane_number()) * kCodeRowWords,
                 page + codes_at(head_dim) + (i / kHalfRows * padded_dim(head_dim) + d) * 16);
  }
  stage_scales(head_dim, to, page, chunk * 4);
}

}  // namespace candor::backend::cuda::attention
