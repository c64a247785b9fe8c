#include "backend/ranks/encoded_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace candor::backend {
namespace {

using kernels::Encoding;

// Numbers of many sizes, and some that have no code.
std::vector<float> some_rows(int32_t n_rows, int32_t n_cols) {
  std::vector<float> rows(static_cast<size_t>(n_rows) * static_cast<size_t>(n_cols));
  uint32_t state = 7;
  for (float& number : rows) {
    state = state * 1664525u + 1013904223u;
    number = (static_cast<float>(state >> 8) / 8388608.0f - 1.0f) * static_cast<float>(1 + (state >> 28));
  }
  rows[5] = std::numeric_limits<float>::quiet_NaN();
  rows[rows.size() / 2] = 0.0f;
  return rows;
}

// Whether columns that each rank encodes by itself make up the whole row, as one would encode it, bit for bit.
void expect_whole(const kernels::KernelTable& table, Encoding encoding, const std::vector<int32_t>& bounds) {
  constexpr int32_t kRows = 3;
  const int32_t n_cols = bounds.back();
  const std::vector<float> rows = some_rows(kRows, n_cols);
  const auto n_ranks = static_cast<int32_t>(bounds.size()) - 1;
  EncodedRows all(table);
  std::vector<std::vector<float>> slices;
  std::vector<int32_t> widths;
  for (int32_t rank = 0; rank < n_ranks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    std::vector<float> own;
    for (int32_t row = 0; row < kRows; ++row) {
      for (int32_t col = bounds[r]; col < bounds[r + 1]; ++col)
        own.push_back(rows[static_cast<size_t>(row * n_cols + col)]);
    }
    all.encode(encoding, bounds, own.data(), kRows, rank);
    const comm::RowSlices sent = all.slices();
    widths.push_back(sent.cols_of(rank));
    slices.emplace_back(sent.rows, sent.rows + static_cast<size_t>(kRows * sent.cols_of(rank)));
  }
  const comm::RowSlices gathered = all.slices();
  float* to = gathered.rows;
  for (int32_t row = 0; row < kRows; ++row) {
    for (size_t r = 0; r < slices.size(); ++r) {
      std::memcpy(to, slices[r].data() + static_cast<size_t>(row * widths[r]),
                  static_cast<size_t>(widths[r]) * sizeof(float));
      to += widths[r];
    }
  }
  EXPECT_LT(gathered.n_cols() * 3, n_cols);  // of the floats
  const std::byte* whole = all.put_together();
  const size_t row_bytes = kernels::encoded_row_bytes(encoding, n_cols);
  for (size_t row = 0; row < kRows; ++row) {
    struct alignas(64) Line {
      std::byte bytes[64];
    };
    std::vector<Line> expected(row_bytes / 64, Line{});
    table.encode(encoding, rows.data() + row * static_cast<size_t>(n_cols), n_cols, expected[0].bytes);
    const size_t sums = kernels::encoded_sums_offset(encoding, n_cols);
    const size_t scales = kernels::encoded_scales_offset(encoding, n_cols);
    const auto n = static_cast<size_t>(n_cols);
    const std::byte* found = whole + row * row_bytes;
    EXPECT_EQ(std::memcmp(found, expected[0].bytes, n), 0);
    const size_t of_sum = encoding == Encoding::kQ8x256 ? 16 : 32;
    const size_t of_scale = encoding == Encoding::kQ8x256 ? 256 : 32;
    EXPECT_EQ(std::memcmp(found + sums, expected[0].bytes + sums, n / of_sum * 2), 0);
    EXPECT_EQ(std::memcmp(found + scales, expected[0].bytes + scales, n / of_scale * 4), 0);
  }
}

TEST(encoded_rows, columns_that_ranks_encode_make_up_the_whole_rows_code) {
  for (const kernels::KernelTable* table : kernels::runnable_tables()) {
    expect_whole(*table, Encoding::kQ8x256, {0, 256, 1024});
    expect_whole(*table, Encoding::kQ8x256, {0, 512, 512, 768});
    expect_whole(*table, Encoding::kQ8x32, {0, 64, 192, 448});
  }
}

TEST(encoded_rows, only_whole_groups_are_sent) {
  EXPECT_TRUE(EncodedRows::can_send(Encoding::kQ8x256, std::vector<int32_t>{0, 256, 1024}));
  EXPECT_FALSE(EncodedRows::can_send(Encoding::kQ8x256, std::vector<int32_t>{0, 128, 256}));
  EXPECT_TRUE(EncodedRows::can_send(Encoding::kQ8x32, std::vector<int32_t>{0, 128, 256}));
  EXPECT_FALSE(EncodedRows::can_send(Encoding::kQ8x32, std::vector<int32_t>{0, 32, 64}));
  EXPECT_FALSE(EncodedRows::can_send(Encoding::kF32, std::vector<int32_t>{0, 256, 512}));
  EXPECT_FALSE(EncodedRows::can_send(Encoding::kBf16, std::vector<int32_t>{0, 256, 512}));
}

}  // namespace
}  // namespace candor::backend
