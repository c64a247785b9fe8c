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

// Formats: how a stage holds them.
struct Bf16Pages {
  using Rows = PairRows;
};
struct F32Pages {
  using Rows = WideRows;
};
struct Q8Pages {
  using Rows = CodeRows;
};
template <class Pages>
constexpr bool kIsQ8 = false;
template <>
inline constexpr bool kIsQ8<Q8Pages> = true;

// Words of a stage, and of one of values that no head fills.
template <class Pages>
constexpr int32_t staged_words() {
  if constexpr (kIsQ8<Pages>)
    return kCodeStageWords;
  else
    return stage_words(Pages::Rows::kPer);
}
template <class Pages>
constexpr int32_t staged_value_words(int32_t head_dim) {
  if constexpr (kIsQ8<Pages>)
    return kCodeStageWords;
  else
    return value_stage_words(head_dim, Pages::Rows::kPer);
}

// The pages of one sequence and K/V head: [begin, end) of them are wanted.
struct SeenPages {
  const std::byte* base;
  const int32_t* blocks;
  int64_t block_bytes;
  int32_t begin;
  int32_t end;
  bool has_pairs;  // of codes of 4 bits (kernels::KvFormat::kQ4)
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

// What a stage of values holds: dims of one page from chunk * kChunkDims on, or of narrow heads two pages, from piece
// kPieces / 2 on the second.
struct ValuePages {
  int32_t page;
  int32_t n_pages;  // 1 or 2
  int32_t chunk;

  CANDOR_DEVICE int32_t page_pieces() const { return kPieces / n_pages; }
  // 16 dims of piece i, or -1.
  CANDOR_DEVICE int32_t group_of(int32_t i, int32_t head_dim) const {
    const int32_t group = chunk * kPieces + i % page_pieces();
    return group < padded_dim(head_dim) / 16 ? group : -1;
  }
};

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
// By all threads.
template <class Pages>
CANDOR_DEVICE void stage_values(int32_t head_dim, const Stage& to, const SeenPages& values, const ValuePages& of) {
  constexpr int32_t kPer = Pages::Rows::kPer;
  constexpr int32_t kPieceUnits = kPageTokens / kPer / 16;
  const QuarterPlace place = quarter_place();
  for (int32_t unit = place.first_unit; unit < kPieces * kPieceUnits; unit += place.n_units) {
    const int32_t piece = unit / kPieceUnits;
    const int32_t page = of.page + piece / of.page_pieces();
    const int32_t group = of.group_of(piece, head_dim);
    if (page >= values.end || group < 0) continue;
    const int32_t row = unit % kPieceUnits * 16 + place.row;
    copy_quarter(to, piece * piece_words(kPer) + row * kRowWords + place.c * 4,
                 values.at(page) + (group * kPieceUnits * 16 + row) * 64 + place.c * 16);
  }
}
// By all threads: the same from a key page. n_dims: of a value.
template <class Pages>
CANDOR_DEVICE void stage_latent(int32_t head_dim, const Stage& to, const SeenPages& keys, const ValuePages& of,
                                int32_t n_dims) {
  const std::byte* page = keys.at(of.page);
  constexpr int32_t kPer = Pages::Rows::kPer;
  constexpr int32_t kHalfUnits = kChunkDims / kPer / 16;
  const QuarterPlace place = quarter_place();
  for (int32_t unit = place.first_unit; unit < 2 * kHalfUnits; unit += place.n_units) {
    const int32_t row = unit % kHalfUnits * 16 + place.row;
    if (of.chunk * kChunkDims + row * kPer >= n_dims) continue;
    const int32_t from = (unit / kHalfUnits * padded_dim(head_dim) + of.chunk * kChunkDims) / kPer + row;
    const uint32_t word = latent_word<typename Pages::Rows>(static_cast<uint32_t>(unit / kHalfUnits),
                                                            static_cast<uint32_t>(row), static_cast<uint32_t>(place.c));
    copy_quarter(to, static_cast<int32_t>(word), page + from * 64 + place.c * 16);
  }
}
}  // namespace candor::backend::cuda::attention
