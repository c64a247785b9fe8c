#include "kernels/packed_weight.h"

#include <map>

#include "kernels/test_support.h"

namespace candor::kernels::testing {

using candor::testing::random_tensor;

TEST(packed_weight, decoded_rows_are_the_bits_of_the_file_in_every_format) {
  for (const DType dtype : kAllFormats) {
    const int64_t n_in = dtype_info(dtype).block_elements > 32 ? 768 : 672;
    const WeightShape shape{dtype, 37, n_in};
    ASSERT_TRUE(can_pack(shape)) << dtype_info(dtype).name;
    const auto tensor = random_tensor("w", dtype, {37, n_in}, 7);
    const Buffer packed(packed_bytes(shape));
    pack_panels(shape, tensor.view().data, 0, 1, packed.data());
    pack_panels(shape, tensor.view().data, 1, n_panels(shape), packed.data());
    std::vector<float> expected(static_cast<size_t>(n_in));
    std::vector<float> decoded(static_cast<size_t>(n_in));
    for (int64_t row = 0; row < 37; ++row) {
      decode_row(tensor.view(), row, expected.data());
      decode_packed_row(shape, packed.data(), row, decoded.data());
      ASSERT_EQ(first_difference(expected, decoded), -1) << dtype_info(dtype).name << " row " << row;
    }
  }
}

// Whatever the number of columns leaves over.
TEST(packed_weight, float_rows_of_any_length_are_the_bits_of_the_file) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t n_in : {1, 2, 7, 31, 32, 37, 64, 101}) {
      const WeightShape shape{dtype, 35, n_in};
      const auto tensor = random_tensor("w", dtype, {35, n_in}, 8);
      const Buffer packed(packed_bytes(shape));
      pack_panels(shape, tensor.view().data, 0, n_panels(shape), packed.data());
      std::vector<float> expected(static_cast<size_t>(n_in));
      std::vector<float> decoded(static_cast<size_t>(n_in));
      for (int64_t row = 0; row < 35; ++row) {
        decode_row(tensor.view(), row, expected.data());
        decode_packed_row(shape, packed.data(), row, decoded.data());
        ASSERT_EQ(first_difference(expected, decoded), -1)
            << dtype_info(dtype).name << " of " << n_in << ", row " << row;
      }
    }
  }
}

// Bytes of a super-block for 256 weights, or blocks, where the packed form differs from the file's.
std::map<DType, size_t> packed_sizes() {
  return {{DType::kQ4_KFast, 148}, {DType::kTQ1_0, 66},  {DType::kQ1_0, 48},
          {DType::kQ2_0, 80},      {DType::kIQ1_S, 54},  {DType::kIQ1_M, 58},
          {DType::kIQ2_XXS, 70},   {DType::kIQ2_XS, 78}, {DType::kIQ3_XXS, 102}};
}

TEST(packed_weight, packed_size_is_the_size_of_the_file_or_what_is_said_of_the_format) {
  const auto sizes = packed_sizes();
  for (const DType dtype : kAllFormats) {
    const auto differs = sizes.find(dtype);
    if (differs != sizes.end()) {
      EXPECT_EQ(packed_bytes({dtype, 4096, 4096}), 4096 * 4096 / 256 * differs->second) << dtype_info(dtype).name;
      continue;
    }
    const WeightShape shape{dtype, 4096, 4096};
    const DTypeInfo& info = dtype_info(dtype);
    const size_t file = static_cast<size_t>(shape.n_out) * row_bytes(info, shape.n_in);
    EXPECT_EQ(packed_bytes(shape), file) << info.name;
  }
}

TEST(packed_weight, shapes_without_kernels_are_refused) {
  EXPECT_FALSE(can_pack({DType::kQ4_K, 16, 128}));
  EXPECT_FALSE(can_pack({DType::kQ8_0, 16, 48}));
  EXPECT_FALSE(can_pack({DType::kF32, 0, 16}));
  EXPECT_FALSE(can_pack({DType::kF32, 16, -16}));
  EXPECT_FALSE(can_pack({DType::kI32, 16, 16}));
  EXPECT_FALSE(can_pack({DType::kF32, int64_t{1} << 62, 16}));
}

}  // namespace candor::kernels::testing
