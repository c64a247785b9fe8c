#pragma once
// Pages of K and V (kernels/attend.h) on their way into the stages of a block's shared memory (attend_stages.h). Those
// of int8 become bf16 on it. Included behind language.h.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/language.h"
#include "kernels/attend.h"

namespace candor::backend::cuda::attention {

// How quarter c of a row comes from a page. d, t: the row's first dim (token).
struct Bf16Pages {
  using Rows = PairRows;
};
struct F32Pages {
  using Rows = WideRows;
};
struct Q8Pages {
  using Rows = PairRows;
};

template <class Pages>
struct PageReader {
  int32_t dp;

  static constexpr int32_t kPer = Pages::Rows::kPer;

  CANDOR_DEVICE void put_key(const Stage& stage, int32_t word, const std::byte* page, int32_t half, int32_t d,
                             int32_t c) const {
    copy_async16(stage.words, stage.at + word, page + int64_t{half * dp + d} / kPer * 64 + c * 16);
  }
  CANDOR_DEVICE void put_value(const Stage& stage, int32_t word, const std::byte* page, int32_t group, int32_t t,
                               int32_t c) const {
    copy_async16(stage.words, stage.at + word, page + int64_t{group * kPageTokens + t} / kPer * 64 + c * 16);
  }
};

// Codes stand behind their scales, 16 in a row of a dim (token).
template <>
struct PageReader<Q8Pages> {
  int32_t dp;
  int32_t n_scale_groups;

  CANDOR_DEVICE const std::byte* codes_of(const std::byte* page, int32_t row, int32_t c) const {
    return page + int64_t{n_scale_groups} * kPageTokens * 2 + int64_t{row} * 16 + c * 4;
  }
  CANDOR_DEVICE static float code(uint32_t codes, uint32_t i) {
    return to_float_rn(static_cast<int8_t>(codes >> (8 * i)));
  }
  CANDOR_DEVICE static uint32_t pair(float low, float high) {
    return float_to_bf16(low) | static_cast<uint32_t>(float_to_bf16(high)) << 16;
  }
  CANDOR_DEVICE static float scale(uint32_t halves, uint32_t i) {
    return half_to_float(static_cast<uint16_t>(halves >> (16 * i)));
  }
  CANDOR_DEVICE static uint32_t word_at(const std::byte* p) { return *reinterpret_cast<const uint32_t*>(p); }

  CANDOR_DEVICE void put_key(const Stage& stage, int32_t word, const std::byte* page, int32_t half, int32_t d,
                             int32_t c) const {
    const uint32_t first = word_at(codes_of(page, half * dp + d, c));
    const uint32_t second = word_at(codes_of(page, half * dp + d + 1, c));
    const std::byte* scales = page + (d / kernels::kKvScaleDims * kPageTokens + half * 16 + c * 4) * 2;
    const uint32_t low = word_at(scales);
    const uint32_t high = word_at(scales + 4);
    const float s[4] = {scale(low, 0), scale(low, 1), scale(high, 0), scale(high, 1)};
    uint32_t w[4];
    CANDOR_UNROLL
    for (uint32_t i = 0; i < 4; ++i) w[i] = pair(mul_rn(code(first, i), s[i]), mul_rn(code(second, i), s[i]));
    store16(stage.words, stage.at + word, Uint4{w[0], w[1], w[2], w[3]});
  }
  CANDOR_DEVICE void put_value(const Stage& stage, int32_t word, const std::byte* page, int32_t group, int32_t t,
                               int32_t c) const {
    const uint32_t first = word_at(codes_of(page, group * kPageTokens + t, c));
    const uint32_t second = word_at(codes_of(page, group * kPageTokens + t + 1, c));
    const uint32_t s = word_at(page + (group * 16 / kernels::kKvScaleDims * kPageTokens + t) * 2);
    uint32_t w[4];
    CANDOR_UNROLL
    for (uint32_t i = 0; i < 4; ++i)
      w[i] = pair(mul_rn(code(first, i), scale(s, 0)), mul_rn(code(second, i), scale(s, 1)));
    store16(stage.words, stage.at + word, Uint4{w[0], w[1], w[2], w[3]});
  }
};

template <class Pages>
CANDOR_DEVICE PageReader<Pages> reader_of(int32_t head_dim) {
  return {padded_dim(head_dim)};
}
template <>
CANDOR_DEVICE PageReader<Q8Pages> reader_of<Q8Pages>(int32_t head_dim) {
  return {padded_dim(head_dim), (head_dim + kernels::kKvScaleDims - 1) / kernels::kKvScaleDims};
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

// By all threads: keys of the tile whose first page is first_page, of dims from d0 on.
template <class Pages>
CANDOR_DEVICE void stage_keys(const PageReader<Pages>& reader, const Stage& stage, const SeenPages& keys,
                              int32_t first_page, int32_t d0) {
  using Rows = typename Pages::Rows;
  constexpr int32_t kRows = kStageDims / Rows::kPer;
  for (int32_t i = thread(); i < kPieces * kRows * 4; i += n_threads()) {
    const int32_t c = i % 4;
    const int32_t d = d0 + i / 4 % kRows * Rows::kPer;
    const int32_t piece = i / 4 / kRows;
    const int32_t page = first_page + piece / 2;
    if (d >= reader.dp || page < keys.begin || page >= keys.end) continue;
    const int32_t word = piece * piece_words<Rows>() + i / 4 % kRows * kRowWords + c * 4;
    reader.put_key(stage, word, keys.at(page), piece % 2, d, c);
  }
}

// By all threads: values of a page, of dims from chunk * kChunkDims on.
template <class Pages>
CANDOR_DEVICE void stage_values(const PageReader<Pages>& reader, const Stage& stage, const std::byte* page,
                                int32_t chunk) {
  using Rows = typename Pages::Rows;
  constexpr int32_t kRows = kStageDims / Rows::kPer;
  const int32_t first = chunk * kPieces;
  const int32_t left = reader.dp / 16 - first;
  const int32_t n = (left < kPieces ? left : kPieces) * kRows * 4;
  for (int32_t i = thread(); i < n; i += n_threads()) {
    const int32_t c = i % 4;
    const int32_t row = i / 4 % kRows;
    const int32_t piece = i / 4 / kRows;
    reader.put_value(stage, piece * piece_words<Rows>() + row * kRowWords + c * 4, page, first + piece,
                     row * Rows::kPer, c);
  }
}

// By all threads: the same from a key page. n_dims: of a value.
template <class Pages>
CANDOR_DEVICE void stage_latent(const PageReader<Pages>& reader, const Stage& stage, const std::byte* page,
                                int32_t chunk, int32_t n_dims) {
  using Rows = typename Pages::Rows;
  constexpr int32_t kRows = kChunkDims / Rows::kPer;
  for (int32_t i = thread(); i < 2 * kRows * 4; i += n_threads()) {
    const int32_t c = i % 4;
    const int32_t row = i / 4 % kRows;
    const int32_t half = i / 4 / kRows;
    const int32_t d = chunk * kChunkDims + row * Rows::kPer;
    if (d < n_dims) reader.put_key(stage, latent_word<Rows>(half, row, c), page, half, d, c);
  }
}

}  // namespace candor::backend::cuda::attention
