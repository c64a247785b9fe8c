#include <cmath>

#include "kernels/packed_format.h"
#include "kernels/test_support.h"

namespace candor::kernels::testing {

using candor::testing::random_tensor;

namespace {

class matmul : public KernelTest {};

// A packed random weight and n_rows encoded random rows.
struct Problem {
  Problem(DType dtype, int64_t n_out, int64_t n_in, int32_t n_rows, const KernelTable& table)
      : shape{dtype, n_out, n_in},
        tensor(random_tensor("w", dtype, {n_out, n_in}, 11)),
        packed(packed_bytes(shape)),
        encoded(encoded_row_bytes(encoding_of(dtype), n_in) * static_cast<size_t>(n_rows)),
        m(n_rows) {
    pack_panels(shape, tensor.view().data, 0, n_panels(shape), packed.data());
    for (int32_t r = 0; r < n_rows; ++r) {
      const auto row = random_row(n_in, 100 + static_cast<uint64_t>(r), r % 3 == 1 ? 50.0f : 1.0f);
      table.encode(encoding_of(dtype), row.data(), n_in, row_of(r));
    }
  }

  std::byte* row_of(int32_t r) const {
    return encoded.data() + encoded_row_bytes(encoding_of(shape.dtype), shape.n_in) * static_cast<size_t>(r);
  }

  // Rows [first, first + n), panels in two calls, of which the second uses what the first prepared.
  std::vector<float> run(const KernelTable& table, int32_t first, int32_t n) const {
    const Buffer scratch(matmul_scratch_bytes(shape.n_in));
    std::memset(scratch.data(), 0xff, scratch.size());  // NaN where floats are expected
    std::vector<float> dst(static_cast<size_t>(n * shape.n_out), -1.0f);
    MatmulArgs args{.shape = shape,
                    .weights = packed.data(),
                    .activations = row_of(first),
                    .n_rows = n,
                    .dst = dst.data(),
                    .dst_stride = shape.n_out,
                    .panel_begin = 0,
                    .panel_end = 1,
                    .scratch = scratch.data()};
    table.matmul(args);
    args.panel_begin = 1;
    args.panel_end = n_panels(shape);
    args.follows_its_like = true;
    table.matmul(args);
    return dst;
  }

  WeightShape shape;
  candor::testing::OwnedTensor tensor;
  Buffer packed;
  Buffer encoded;
  int32_t m;
};

int64_t columns_of(DType dtype) {
  if (dtype == DType::kBF16) return 352;  // whole tiles of 32
  if (dtype == DType::kFP8 || dtype == DType::kFP4) return 640;
  const int32_t block = dtype_info(dtype).block_elements;
  return block == 256 ? 768 : block == 1 ? 333 : block == 32 ? 672 : 640;
}

// The encoded activation k of a row, as a number.
double activation(const Problem& problem, int32_t row, int64_t k) {
  const Encoding encoding = encoding_of(problem.shape.dtype);
  const std::byte* base = problem.row_of(row);
  if (encoding == Encoding::kF32 || encoding == Encoding::kBf16) return reinterpret_cast<const float*>(base)[k];
  const int64_t group = encoding == Encoding::kQ8Row ? problem.shape.n_in : encoding == Encoding::kQ8x256 ? 256 : 32;
  const auto* scales = reinterpret_cast<const float*>(base + encoded_scales_offset(encoding, problem.shape.n_in));
  return static_cast<double>(reinterpret_cast<const int8_t*>(base)[k]) * static_cast<double>(scales[k / group]);
}

}  // namespace

TEST_F(matmul, portable_agrees_with_f64_on_the_decoded_weights) {
  const KernelTable& table = *runnable_tables().front();
  for (const DType dtype : kAllFormats) {
    const Problem problem(dtype, 40, columns_of(dtype), 3, table);
    const std::vector<float> out = problem.run(table, 0, 3);
    std::vector<float> w(static_cast<size_t>(problem.shape.n_in));
    for (int64_t n = 0; n < 40; ++n) {
      decode_row(problem.tensor.view(), n, w.data());
      for (int32_t m = 0; m < 3; ++m) {
        double sum = 0;
        double magnitude = 0;
        for (int64_t k = 0; k < problem.shape.n_in; ++k) {
          const double term = static_cast<double>(w[static_cast<size_t>(k)]) * activation(problem, m, k);
          sum += term;
          magnitude += std::fabs(term);
        }
        // A chain of n roundings errs by at most n * 2^-24 of the sum of magnitudes; minima add terms that cancel.
        const double bound = 4e-5 * magnitude + 1e-6;
        ASSERT_NEAR(out[static_cast<size_t>(m * 40 + n)], sum, bound) << dtype_info(dtype).name << " " << m << "," << n;
      }
    }
  }
}

// Every size of a tile, and more rows than small chunks have.
TEST_F(matmul, every_instruction_set_and_number_of_rows_gives_the_bits_of_portable) {
  constexpr int32_t kMost = 83;
  constexpr int32_t kOut = 150;
  const auto tables = tested_products();
  std::vector<int32_t> row_counts = {24, 25, 29, 31, 32, 33, 48, kMost};
  for (int32_t m = 1; m < 20; ++m) row_counts.push_back(m);
  for (const DType dtype : kAllFormats) {
    const Problem problem(dtype, kOut, columns_of(dtype), kMost, *tables.front());
    const std::vector<float> all = problem.run(*tables.front(), 0, kMost);
    for (const int32_t m : row_counts) {
      const std::vector<float> expected(all.begin(), all.begin() + m * kOut);
      for (const KernelTable* table : tables) {
        const auto difference = first_difference(expected, problem.run(*table, 0, m));
        ASSERT_EQ(difference, -1) << table->name << " " << dtype_info(dtype).name << " M = " << m;
      }
    }
  }
}

TEST_F(matmul, more_rows_than_are_walked_at_once_change_nothing) {
  constexpr int32_t kRows = 530;  // tile registers walk 512, lanes 256
  constexpr int64_t kOut = 150;
  const auto tables = tested_products();
  for (const DType dtype : {DType::kQ2_K, DType::kQ4_K, DType::kQ6_K, DType::kQ8_0, DType::kQ4_1, DType::kMXFP4,
                            DType::kBF16, DType::kW8A8}) {
    const Problem problem(dtype, kOut, columns_of(dtype), kRows, *tables.front());
    const std::vector<float> all = problem.run(*tables.front(), 0, kRows);
    for (const int32_t m : {256, 512, kRows}) {
      const std::vector<float> expected(all.begin(), all.begin() + m * kOut);
      for (const KernelTable* table : tables) {
        ASSERT_EQ(first_difference(expected, problem.run(*table, 0, m)), -1)
            << table->name << " " << dtype_info(dtype).name << " M = " << m;
      }
    }
  }
}

TEST_F(matmul, bf16_rows_of_any_length_have_the_bits_of_portable) {
  const auto tables = tested_tables();
  for (const int64_t n_in : {1, 31, 333, 368}) {
    const Problem problem(DType::kBF16, 40, n_in, 18, *tables.front());
    const std::vector<float> expected = problem.run(*tables.front(), 0, 18);
    for (const KernelTable* table : tables) {
      EXPECT_EQ(first_difference(expected, problem.run(*table, 0, 18)), -1) << table->name << " " << n_in;
    }
  }
}

// Of less than a unit, of whole ones and of a last one that is short; in whole steps of tiles and not.
TEST_F(matmul, blocks_of_32_of_any_length_have_the_bits_of_portable) {
  const auto tables = tested_products();
  for (const DType dtype : kAllFormats) {
    if (family_of(dtype) != KernelFamily::kBlocks) continue;
    for (const int64_t n_in : {32, 64, 96, 128, 160, 256, 288, 384, 448, 480, 2048}) {
      if (n_in % dtype_info(dtype).block_elements != 0) continue;
      constexpr int32_t kRows = 70;
      const Problem problem(dtype, 102, n_in, kRows, *tables.front());
      const std::vector<float> all = problem.run(*tables.front(), 0, kRows);
      for (const int32_t m : {1, 12, 16, 33, kRows}) {
        const std::vector<float> expected(all.begin(), all.begin() + m * 102);
        for (const KernelTable* table : tables) {
          ASSERT_EQ(first_difference(expected, problem.run(*table, 0, m)), -1)
              << table->name << " " << dtype_info(dtype).name << " " << n_in << " M = " << m;
        }
      }
    }
  }
}

// Of less k than a step of tiles, of several depths, and of a last one that is short.
TEST_F(matmul, scaled_rows_of_any_length_have_the_bits_of_portable) {
  const auto tables = tested_tables();
  for (const int64_t n_in : {32, 96, 256, 288, 1024, 1056, 2080}) {
    for (const int32_t n_rows : {1, 5, 18, 70}) {
      const Problem problem(DType::kW8A8, 102, n_in, n_rows, *tables.front());
      const std::vector<float> expected = problem.run(*tables.front(), 0, n_rows);
      for (const KernelTable* table : tables) {
        EXPECT_EQ(first_difference(expected, problem.run(*table, 0, n_rows)), -1) << table->name << " " << n_in;
      }
    }
  }
}

// Of the longest row that is allowed, as large as codes can be: the sum stays within 32 bits.
TEST_F(matmul, the_longest_scaled_row_stays_exact) {
  constexpr int64_t kLongest = quant::kMostW8A8Elements;
  EXPECT_FALSE(can_pack({DType::kW8A8, 16, kLongest + 32}));
  const auto tables = tested_tables();
  Problem problem(DType::kW8A8, 16, kLongest, 18, *tables.front());
  std::memset(problem.tensor.bytes(), 0x80, problem.tensor.view().n_bytes);
  const float scale = 0.5f;
  for (size_t row = 0; row < 16; ++row) {
    std::memcpy(problem.tensor.bytes() + row * problem.tensor.view().row_bytes(), &scale, sizeof scale);
  }
  pack_panels(problem.shape, problem.tensor.view().data, 0, 1, problem.packed.data());
  const std::vector<float> ones(static_cast<size_t>(kLongest), 1.0f);
  for (int32_t r = 0; r < 18; ++r) {
    tables.front()->encode(Encoding::kQ8Row, ones.data(), kLongest, problem.row_of(r));
  }
  const float expected = (1.0f / 127.0f) * (0.5f * static_cast<float>(-128 * 127 * kLongest));
  for (const KernelTable* table : tables) {
    const Buffer scratch(matmul_scratch_bytes(kLongest));
    std::vector<float> dst(16 * 18);
    table->matmul({problem.shape, problem.packed.data(), problem.row_of(0), 18, dst.data(), 16, 0, 1, scratch.data()});
    EXPECT_EQ(first_difference(std::vector<float>(16 * 18, expected), dst), -1) << table->name;
  }
}

TEST_F(matmul, a_row_has_the_same_bits_alone_and_among_many) {
  for (const KernelTable* table : tested_products()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K, DType::kQ4_KFast,
                              DType::kW8A8}) {
      const Problem problem(dtype, 40, columns_of(dtype), kMatmulRows + 5, *table);
      const std::vector<float> all = problem.run(*table, 0, kMatmulRows + 5);
      for (const int32_t r : {0, 1, 7, 100, kMatmulRows - 1, kMatmulRows, kMatmulRows + 4}) {
        const std::vector<float> row(all.begin() + r * 40, all.begin() + (r + 1) * 40);
        ASSERT_EQ(first_difference(row, problem.run(*table, r, 1)), -1) << table->name << " row " << r;
      }
    }
  }
}

// A row with large sums of |x| beside rows with small ones: the tile takes other dots.
TEST_F(matmul, rows_keep_their_bits_beside_one_with_large_sums) {
  constexpr int32_t kRows = 36;
  const KernelTable& portable = *runnable_tables().front();
  for (const DType dtype : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    const Problem problem(dtype, 40, columns_of(dtype), kRows, portable);
    std::vector<float> large(static_cast<size_t>(problem.shape.n_in), 1.0f);
    for (size_t k = 0; k < large.size(); k += 3) large[k] = -0.9f;
    portable.encode(encoding_of(dtype), large.data(), problem.shape.n_in, problem.row_of(kRows - 1));
    std::vector<float> alone;
    for (int32_t r = 0; r < kRows; ++r) {
      const std::vector<float> row = problem.run(portable, r, 1);
      alone.insert(alone.end(), row.begin(), row.end());
    }
    for (const KernelTable* table : tested_tables()) {
      for (const int32_t m : {3, 8, 16, 19, 35}) {
        for (const int32_t first : {kRows - m, kRows - 1 - m}) {
          const std::vector<float> expected(alone.begin() + first * 40, alone.begin() + (first + m) * 40);
          ASSERT_EQ(first_difference(expected, problem.run(*table, first, m)), -1)
              << table->name << " " << dtype_info(dtype).name << " " << m << " rows from " << first;
        }
      }
    }
  }
}

constexpr int32_t kExtremeRows = 35;  // enough for tile registers

TEST_F(matmul, extreme_codes_and_scales_stay_exact) {
  const auto tables = tested_products();
  for (const DType dtype : kAllFormats) {
    if (dtype_info(dtype).block_elements == 1) continue;
    Problem problem(dtype, 16, columns_of(dtype), kExtremeRows, *tables.front());
    for (const int fill : {0x00, 0xff, 0x80, 0x7f, 0x88}) {
      const DTypeInfo& info = dtype_info(dtype);
      SplitMix rng(3);
      const size_t stride = problem.tensor.view().row_bytes();
      for (size_t at = 0; at < problem.tensor.view().n_bytes; at += static_cast<size_t>(info.block_bytes)) {
        if (at % stride == 0) at += static_cast<size_t>(info.row_header_bytes);
        std::vector<std::byte> kept(problem.tensor.bytes() + at, problem.tensor.bytes() + at + info.block_bytes);
        std::memset(problem.tensor.bytes() + at, fill, static_cast<size_t>(info.block_bytes));
        const bool has_head = info.block_elements == 32 && info.row_header_bytes == 0;
        const int head = has_head ? (dtype == DType::kMXFP4 ? 1 : 2) : 0;
        std::memcpy(problem.tensor.bytes() + at, kept.data(), static_cast<size_t>(head));
      }
      pack_panels(problem.shape, problem.tensor.view().data, 0, 1, problem.packed.data());
      const std::vector<float> big(static_cast<size_t>(problem.shape.n_in), fill == 0x80 ? -1.0f : 1.0f);
      tables.front()->encode(encoding_of(dtype), big.data(), problem.shape.n_in, problem.row_of(0));
      std::vector<std::vector<float>> results;
      for (const KernelTable* table : tables) {
        const Buffer scratch(matmul_scratch_bytes(problem.shape.n_in));
        std::vector<float> dst(16 * kExtremeRows);
        table->matmul({problem.shape, problem.packed.data(), problem.row_of(0), kExtremeRows, dst.data(), 16, 0, 1,
                       scratch.data()});
        results.push_back(dst);
        EXPECT_EQ(first_difference(results.front(), dst), -1) << table->name << " " << info.name << " fill " << fill;
      }
    }
  }
}

}  // namespace candor::kernels::testing
