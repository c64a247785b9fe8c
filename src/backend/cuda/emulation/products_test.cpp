// Matrix products and encoded activations of the device's kernels, bit for bit those of the portable kernels.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "backend/cuda/emulation/device_test_support.h"
#include "backend/cuda/emulation/emulated_device.h"
#include "backend/cuda/emulation/language_host.h"
#include "backend/cuda/product_kernels.h"
#include "backend/cuda/product_shape.h"
#include "base/checked.h"
#include "kernels/packed_format.h"
#include "kernels/test_support.h"

namespace candor::backend::cuda {
namespace {

using candor::testing::OwnedTensor;
using candor::testing::random_tensor;
using candor::testing::SplitMix;
using kernels::Encoding;
using kernels::KernelFamily;
using kernels::KernelTable;
using kernels::WeightShape;
using kernels::testing::Buffer;
using kernels::testing::first_difference;
using kernels::testing::kAllFormats;
using kernels::testing::random_row;

const KernelTable& portable() {
  return *kernels::runnable_tables().front();
}

// Rows of every kind that an encoding treats by itself, one after the other.
std::vector<float> row_of_kind(int64_t n, int32_t kind) {
  const auto seed = static_cast<uint64_t>(100 + kind);
  const auto size = static_cast<size_t>(n);
  switch (kind % 9) {
    case 1:
      return random_row(n, seed, 50.0f);
    case 2:
      return std::vector<float>(size, 0.0f);
    case 3:
      return random_row(n, seed, 1e-36f);
    case 4:
      return random_row(n, seed, 1e35f);
    case 5:
      return std::vector<float>(size, -0.75f);
    case 6: {
      std::vector<float> row = random_row(n, seed);
      row[size / 2] = std::numeric_limits<float>::infinity();
      row[size / 3] = std::numeric_limits<float>::quiet_NaN();
      return row;
    }
    case 7: {
      std::vector<float> row = random_row(n, seed);
      for (size_t i = 0; i < size; i += 3) row[i] = i % 2 == 0 ? -0.0f : 1e-42f;
      for (size_t i = 0; i < std::min<size_t>(size, 64); ++i) row[i] *= 1e-38f;
      return row;
    }
    default:
      return random_row(n, seed);
  }
}

class ProductKernelTest : public kernels::testing::KernelTest {
 protected:
  template <class T>
  T* upload(const T* values, size_t n) {
    memory_.push_back(DeviceMemory::make(*device_, n * sizeof(T)).value());
    device_->copy_in(memory_.back().data(), values, n * sizeof(T));
    return memory_.back().as<T>();
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    return upload(values.data(), values.size());
  }
  template <class T>
  std::vector<T> download(const T* memory, size_t n) {
    std::vector<T> values(n);
    device_->copy_out(values.data(), memory, n * sizeof(T));
    return values;
  }
  std::string error() const {
    const auto status = device_->status();
    return status ? "" : status.error().message;
  }

  std::unique_ptr<Device> device_ = make_test_device();
  std::vector<DeviceMemory> memory_;
};

// A matrix, rows of activations, and what the portable kernels make of them. Each result has `pad` more columns.
struct Problem {
  Problem(const WeightShape& the_shape, const std::byte* weights, int32_t n, int32_t first_kind = 0)
      : shape(the_shape),
        encoding(kernels::encoding_of(shape.dtype)),
        row_bytes(kernels::encoded_row_bytes(encoding, shape.n_in)),
        packed(kernels::packed_bytes(shape)),
        encoded(row_bytes * static_cast<size_t>(n)),
        n_rows(n) {
    kernels::pack_panels(shape, weights, 0, kernels::n_panels(shape), packed.data());
    for (int32_t r = 0; r < n; ++r) {
      const auto row = row_of_kind(shape.n_in, first_kind + r);
      portable().encode(encoding, row.data(), shape.n_in, encoded.data() + row_bytes * static_cast<size_t>(r));
    }
  }

  // [n, n_out] of rows from first on.
  std::vector<float> expected(int32_t first, int32_t n) const {
    const Buffer scratch(kernels::matmul_scratch_bytes(shape.n_in));
    std::vector<float> dst(static_cast<size_t>(n * shape.n_out));
    portable().matmul({.shape = shape,
                       .weights = packed.data(),
                       .activations = encoded.data() + row_bytes * static_cast<size_t>(first),
                       .n_rows = n,
                       .dst = dst.data(),
                       .dst_stride = shape.n_out,
                       .panel_begin = 0,
                       .panel_end = kernels::n_panels(shape),
                       .scratch = scratch.data()});
    return dst;
  }

  WeightShape shape;
  Encoding encoding;
  size_t row_bytes;
  Buffer packed;
  Buffer encoded;
  int32_t n_rows;
};

int64_t block_of(DType dtype) {
  return dtype_info(dtype).block_elements;
}

// Rows of one block, of less than the block of threads takes in a turn, and of more.
std::vector<int64_t> depths_of(DType dtype) {
  const int64_t block = block_of(dtype);
  if (block == 1) return {1, 31, 333, 2100};
  if (block == 32) return {32, 96, 288, 1120};
  if (block == 256) return {256, 768, 2304};
  return {block, 5 * block, 18 * block};
}

}  // namespace

TEST_F(ProductKernelTest, encoded_rows_have_the_bytes_of_portable) {
  for (const Encoding encoding : kernels::kEncodings) {
    for (const int64_t n : {1, 5, 32, 33, 96, 256, 768, 1056, 2304}) {
      if (encoding == Encoding::kQ8x256 && n % 256 != 0) continue;
      if ((encoding == Encoding::kQ8x32 || encoding == Encoding::kQ8Row) && n % 32 != 0) continue;
      constexpr int32_t kRows = 9;
      const int64_t stride = n + 3;
      const std::vector<int32_t> src_rows = {8, 0, 1, 2, 3, 4, 5, 6, 7};
      std::vector<float> src(static_cast<size_t>(stride * kRows), 7.0f);
      const size_t row_bytes = kernels::encoded_row_bytes(encoding, n);
      Buffer expected(row_bytes * kRows);
      std::memset(expected.data(), 0xff, expected.size());
      for (int32_t r = 0; r < kRows; ++r) {
        const auto row = row_of_kind(n, r);
        std::copy(row.begin(), row.end(), src.begin() + src_rows[static_cast<size_t>(r)] * stride);
        portable().encode(encoding, row.data(), n, expected.data() + row_bytes * static_cast<size_t>(r));
      }
      auto* dst = upload(std::vector<std::byte>(row_bytes * kRows, std::byte{0xff}));
      encode_rows(*device_, encoding,
                  {.dst = dst,
                   .src = upload(src),
                   .src_rows = upload(src_rows),
                   .stride = stride,
                   .n = n,
                   .row_bytes = static_cast<int64_t>(row_bytes),
                   .sums_at = static_cast<int64_t>(kernels::encoded_sums_offset(encoding, n)),
                   .scales_at = static_cast<int64_t>(kernels::encoded_scales_offset(encoding, n)),
                   .halves_at = static_cast<int64_t>(kernels::encoded_halves_offset(n)),
                   .n_rows = kRows});
      ASSERT_EQ(error(), "");
      const auto bytes = download(dst, expected.size());
      const auto [at, _] = std::mismatch(bytes.begin(), bytes.end(), expected.data());
      ASSERT_EQ(at - bytes.begin(), static_cast<ptrdiff_t>(bytes.size()))
          << "encoding " << static_cast<int>(encoding) << " of " << n << ", rows of " << row_bytes;
    }
  }
}

namespace {

class ProductBitsTest : public ProductKernelTest {
 protected:
  // All rows of the problem, or [0, n); with columns that are not to be written.
  std::vector<float> run(const Problem& problem, int32_t n_rows) {
    const int64_t stride = problem.shape.n_out + 5;
    float* dst = upload(std::vector<float>(static_cast<size_t>(stride * n_rows), 5.0f));
    ProductArgs args = product_args(problem.shape, upload(problem.encoded.data(), problem.encoded.size()));
    args.one = {.panels = upload(problem.packed.data(), problem.packed.size())};
    args.dst = dst;
    args.dst_stride = stride;
    args.n_out = static_cast<int32_t>(problem.shape.n_out);
    args.most_rows = n_rows;
    run_product(*device_, problem.shape.dtype, args, 1);
    const auto padded = download(dst, static_cast<size_t>(stride * n_rows));
    memory_.clear();
    std::vector<float> results;
    for (size_t i = 0; i < padded.size(); ++i) {
      const bool is_result = static_cast<int64_t>(i) % stride < problem.shape.n_out;
      if (is_result) results.push_back(padded[i]);
      if (!is_result) {
        EXPECT_EQ(padded[i], 5.0f) << i;
      }
    }
    return results;
  }

  void expect_bits(const Problem& problem, int32_t n_rows) {
    const auto results = run(problem, n_rows);
    ASSERT_EQ(error(), "") << dtype_info(problem.shape.dtype).name;
    ASSERT_EQ(first_difference(problem.expected(0, n_rows), results), -1)
        << dtype_info(problem.shape.dtype).name << " [" << problem.shape.n_out << ", " << problem.shape.n_in << "], "
        << n_rows << " rows";
  }
};

}  // namespace

TEST_F(ProductBitsTest, every_format_has_the_bits_of_portable) {
  for (const DType dtype : kAllFormats) {
    for (const int64_t n_in : depths_of(dtype)) {
      for (const int64_t n_out : {1, 23}) {
        const OwnedTensor tensor = random_tensor("w", dtype, {n_out, n_in}, 11);
        const Problem problem({dtype, n_out, n_in}, tensor.view().data, 3);
        ASSERT_NO_FATAL_FAILURE(expect_bits(problem, n_out == 1 ? 1 : 3));
      }
    }
  }
}

TEST_F(ProductBitsTest, any_number_of_rows_has_the_bits_of_portable) {
  for (const DType dtype : kAllFormats) {
    const int64_t n_in = block_of(dtype) == 1 ? 70 : std::max<int64_t>(block_of(dtype), 96);
    const OwnedTensor tensor = random_tensor("w", dtype, {20, n_in}, 12);
    const Problem problem({dtype, 20, n_in}, tensor.view().data, 32);
    for (const int32_t n_rows : {2, 5, 16, 17, 32}) ASSERT_NO_FATAL_FAILURE(expect_bits(problem, n_rows));
  }
}

// Several blocks of rows and of panels, of which the last ones are not full.
TEST_F(ProductBitsTest, many_rows_have_the_bits_of_portable) {
  for (const DType dtype : kAllFormats) {
    const int64_t n_in = block_of(dtype) == 1 ? 333 : std::max<int64_t>(5 * block_of(dtype), 288);
    const OwnedTensor tensor = random_tensor("w", dtype, {70, n_in}, 17);
    const Problem problem({dtype, 70, n_in}, tensor.view().data, 77);
    for (const int32_t n_rows : {33, 77}) ASSERT_NO_FATAL_FAILURE(expect_bits(problem, n_rows));
  }
}

// Any bytes: scales that are infinite, NaN, denormal or zero, codes that encoders do not write.
TEST_F(ProductBitsTest, weights_of_any_bytes_have_the_bits_of_portable) {
  for (const DType dtype : kAllFormats) {
    const int64_t n_in = block_of(dtype) == 1 ? 65 : 3 * block_of(dtype);
    OwnedTensor tensor = random_tensor("w", dtype, {16, n_in}, 13);
    SplitMix random(14);
    for (size_t i = 0; i < tensor.view().n_bytes; ++i) tensor.bytes()[i] = static_cast<std::byte>(random.next() >> 56);
    const size_t stride = tensor.view().row_bytes();
    std::memset(tensor.bytes() + 3 * stride, 0, stride);
    std::memset(tensor.bytes() + 5 * stride, 0x7b, stride);
    std::memset(tensor.bytes() + 6 * stride, 0xff, stride);
    std::memset(tensor.bytes() + 7 * stride, 0x80, stride);
    std::memset(tensor.bytes() + 8 * stride, 0x01, stride);
    const Problem problem({dtype, 16, n_in}, tensor.view().data, 36);
    for (const int32_t n_rows : {9, 36}) ASSERT_NO_FATAL_FAILURE(expect_bits(problem, n_rows));
  }
}

TEST_F(ProductBitsTest, the_longest_scaled_row_stays_exact) {
  constexpr int64_t kLongest = quant::kMostW8A8Elements;
  OwnedTensor tensor = random_tensor("w", DType::kW8A8, {2, kLongest}, 15);
  const float scale = 0.5f;
  for (size_t row = 0; row < 2; ++row) {
    std::byte* bytes = tensor.bytes() + row * tensor.view().row_bytes();
    std::memset(bytes, 0x80, tensor.view().row_bytes());
    std::memcpy(bytes, &scale, sizeof scale);
  }
  const Problem problem({DType::kW8A8, 2, kLongest}, tensor.view().data, 1, 5);
  expect_bits(problem, 1);
}

namespace {

// Matrices of several experts in one launch, with fewer outputs than they have, and biases but for matrix 2. Runs take
// them from the last to the first.
class ProductRunsTest : public ProductBitsTest {
 protected:
  static constexpr int64_t kOut = 33;
  static constexpr int32_t kWanted = 31;

  void expect_runs(DType dtype, const std::vector<int32_t>& n_rows) {
    const WeightShape shape{dtype, kOut, block_of(dtype) == 1 ? 40 : block_of(dtype)};
    std::vector<ProductMatrix> matrices;
    std::vector<RowRun> runs;
    std::vector<float> expected(static_cast<size_t>(std::accumulate(n_rows.begin(), n_rows.end(), 0)) * kWanted);
    std::unique_ptr<Problem> problem;
    int32_t first = 0;
    for (size_t m = 0; m < n_rows.size(); first += n_rows[m++]) {
      const OwnedTensor tensor = random_tensor("w", dtype, {kOut, shape.n_in}, 20 + m);
      problem = std::make_unique<Problem>(shape, tensor.view().data, std::accumulate(n_rows.begin(), n_rows.end(), 0));
      const auto bias = m == 2 ? std::vector<float>(kOut) : random_row(kOut, 30 + m);
      matrices.push_back({upload(problem->packed.data(), problem->packed.size()), m == 2 ? nullptr : upload(bias)});
      runs.insert(runs.begin(), {static_cast<int32_t>(m), first, n_rows[m]});
      if (n_rows[m] == 0) continue;
      const auto results = problem->expected(first, n_rows[m]);
      for (size_t i = 0; i < results.size(); ++i) {
        if (i % kOut >= kWanted) continue;
        expected[static_cast<size_t>(first) * kWanted + i / kOut * kWanted + i % kOut] =
            m == 2 ? results[i] : results[i] + bias[i % kOut];
      }
    }
    runs.push_back({static_cast<int32_t>(matrices.size()), 0, 3});
    matrices.emplace_back();  // of another type
    ProductArgs args = product_args(shape, upload(problem->encoded.data(), problem->encoded.size()));
    float* dst = upload(std::vector<float>(expected.size()));
    args.runs = upload(runs);
    args.matrices = upload(matrices);
    args.dst = dst;
    args.dst_stride = kWanted;
    args.n_out = kWanted;
    args.most_rows = *std::max_element(n_rows.begin(), n_rows.end());
    run_product(*device_, dtype, args, static_cast<int32_t>(runs.size()));
    ASSERT_EQ(error(), "") << dtype_info(dtype).name;
    ASSERT_EQ(first_difference(expected, download(dst, expected.size())), -1) << dtype_info(dtype).name;
    memory_.clear();
  }
};

}  // namespace

TEST_F(ProductRunsTest, runs_have_their_own_rows_matrix_and_bias) {
  for (const DType dtype : kAllFormats) ASSERT_NO_FATAL_FAILURE(expect_runs(dtype, {5, 0, 1, 9}));
}

TEST_F(ProductRunsTest, runs_of_many_rows_and_of_few_share_a_launch) {
  for (const DType dtype : kAllFormats) ASSERT_NO_FATAL_FAILURE(expect_runs(dtype, {0, 34, 7, 65}));
}

namespace {

// Q8_0 by the sentence of numerics.md, a thread an output and row, blocks up or down in k.
template <bool is_descending>
CANDOR_KERNEL(product_of_sentence, ProductArgs) {
  const auto* panel = reinterpret_cast<const uint8_t*>(args.one.panels);
  const auto* row = reinterpret_cast<const uint8_t*>(args.activations) + block_x() * args.row_bytes;
  const uint32_t output = thread() % 16;
  float sum = 0.0f;
  for (int32_t i = 0; i < args.n_in / 32; ++i) {
    const int32_t b = is_descending ? args.n_in / 32 - 1 - i : i;
    int32_t dot = 0;
    for (int32_t k = 32 * b; k < 32 * b + 32; ++k) {
      const auto at = static_cast<uint32_t>(k % 256 / 4 * 64) + 4 * output + static_cast<uint32_t>(k % 4);
      const int32_t q = panel[32 * (args.n_in / 32) + static_cast<int32_t>(at)] - 128;
      dot += q * reinterpret_cast<const int8_t*>(row)[k];
    }
    const float d = half_to_float(reinterpret_cast<const uint16_t*>(panel)[16 * b + static_cast<int32_t>(output)]);
    const float dx = reinterpret_cast<const float*>(row + args.scales_at)[b];
    sum = fma_rn(mul_rn(d, dx), to_float_rn(dot), sum);
  }
  if (thread() < 16) args.dst[block_x() * args.dst_stride + output] = sum;
}

}  // namespace

// What these tests would say of a kernel that adds in another order.
TEST_F(ProductBitsTest, a_chain_that_runs_down_has_other_bits) {
  auto emulation = make_emulated_device();
  EmulatedDevice& device = *emulation;
  device_ = std::move(emulation);
  const OwnedTensor tensor = random_tensor("w", DType::kQ8_0, {16, 256}, 16);
  const Problem problem({DType::kQ8_0, 16, 256}, tensor.view().data, 2);
  ProductArgs args = product_args(problem.shape, upload(problem.encoded.data(), problem.encoded.size()));
  args.one = {.panels = upload(problem.packed.data(), problem.packed.size())};
  args.most_rows = 2;
  float* dst = upload(std::vector<float>(32));
  args.dst = dst;
  args.dst_stride = 16;
  device.launch_function(product_of_sentence<false>, "up", {.x = 2, .n_threads = 32}, args);
  EXPECT_EQ(first_difference(problem.expected(0, 2), download(dst, 32)), -1);
  device.launch_function(product_of_sentence<true>, "down", {.x = 2, .n_threads = 32}, args);
  EXPECT_NE(first_difference(problem.expected(0, 2), download(dst, 32)), -1);
  EXPECT_EQ(error(), "");
}

}  // namespace candor::backend::cuda
