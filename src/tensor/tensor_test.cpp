#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "support/random_weights.h"
#include "support/shared_data.h"
#include "tensor/dtype.h"
#include "tensor/encode.h"
#include "tensor/tensor_view.h"

namespace candor {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

uint32_t bits_of(float f) {
  uint32_t u = 0;
  std::memcpy(&u, &f, 4);
  return u;
}

struct Vector {
  std::string verb;
  DType dtype;
  std::vector<std::byte> from;
  std::vector<std::byte> to;
};

std::vector<Vector> known_answers() {
  std::ifstream file(testing::project_file("src/tensor/testdata/block_vectors.txt"));
  std::vector<Vector> vectors;
  std::string verb, name, from, to;
  while (file >> verb >> name >> from >> to) {
    const DTypeInfo* info = find_dtype(name);
    if (info != nullptr) vectors.push_back({verb, info->dtype, from_hex(from), from_hex(to)});
  }
  return vectors;
}

TEST(dtype, every_type_is_found_by_its_number_and_by_its_name) {
  for (const DTypeInfo& info : dtype_table()) {
    EXPECT_EQ(find_dtype(static_cast<uint32_t>(info.dtype)), &info);
    EXPECT_EQ(find_dtype(info.name), &info);
    EXPECT_EQ(&dtype_info(info.dtype), &info);
  }
  for (const uint32_t unknown : {4u, 5u, 31u, 32u, 33u, 36u, 38u, 43u, 256u, 0xffffffffu}) {
    EXPECT_EQ(find_dtype(unknown), nullptr) << unknown;
  }
  EXPECT_EQ(find_dtype("q4_0"), nullptr);
}

TEST(dtype, the_list_of_weight_types_names_exactly_those_of_the_table) {
  std::istringstream list{std::string(weight_dtype_names())};
  std::vector<std::string> names;
  for (std::string name; std::getline(list >> std::ws, name, ',');) names.push_back(name);
  size_t n_weights = 0;
  for (const DTypeInfo& info : dtype_table()) n_weights += info.is_weight ? 1 : 0;
  EXPECT_EQ(names.size(), n_weights);
  for (const std::string& name : names) {
    ASSERT_NE(find_dtype(name), nullptr) << name;
    EXPECT_TRUE(find_dtype(name)->is_weight) << name;
  }
}

TEST(dtype, products_have_the_arithmetic_of_their_weights) {
  using enum DType;
  const auto expect = [](Arithmetic arithmetic, std::string_view name, std::initializer_list<DType> types) {
    EXPECT_EQ(name_of(arithmetic), name);
    for (const DType type : types) EXPECT_EQ(arithmetic_of(type), arithmetic) << dtype_info(type).name;
  };
  expect(Arithmetic::kF32, "f32", {kF32, kF16});
  expect(Arithmetic::kBf16, "bf16", {kBF16, kFP8, kFP4});
  expect(
      Arithmetic::kInt8, "int8",
      {kQ4_0, kQ8_0, kQ2_K, kQ4_K, kQ6_K, kIQ4_NL, kIQ4_XS, kIQ1_M, kIQ3_S, kTQ1_0, kQ1_0, kMXFP4, kW8A8, kQ4_KFast});
}

TEST(decode, gives_the_bits_of_an_independent_implementation) {
  std::map<DType, int> n_checked;
  for (const Vector& vector : known_answers()) {
    if (vector.verb != "decode") continue;
    const std::vector<float> expected = floats_of(vector.to);
    std::vector<float> decoded(expected.size());
    decode_elements(vector.dtype, vector.from.data(), static_cast<int64_t>(expected.size()), decoded.data());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(bits_of(decoded[i]), bits_of(expected[i])) << dtype_info(vector.dtype).name << " element " << i;
    }
    ++n_checked[vector.dtype];
  }
  for (const DTypeInfo& info : dtype_table()) {
    if (info.is_weight && info.dtype != DType::kF32) {
      EXPECT_GE(n_checked[info.dtype], 3) << info.name;
    }
  }
}

TEST(encode, gives_the_bytes_of_an_independent_implementation) {
  int n_checked = 0;
  for (const Vector& vector : known_answers()) {
    if (vector.verb != "encode") continue;
    const std::vector<float> values = floats_of(vector.from);
    std::vector<std::byte> encoded(vector.to.size());
    encode_elements(vector.dtype, values.data(), static_cast<int64_t>(values.size()), encoded.data());
    EXPECT_EQ(encoded, vector.to) << dtype_info(vector.dtype).name;
    ++n_checked;
  }
  EXPECT_GE(n_checked, 18);
}

// Half a step of the format's coarsest grid, relative to the largest value of a block, plus what scales lose.
float largest_relative_error(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0.0f;
    case DType::kF16:
      return 0x1p-11f;
    case DType::kBF16:
      return 0x1p-8f;
    case DType::kQ8_0:
    case DType::kW8A8:
      return 0.006f;
    case DType::kQ6_K:
      return 0.05f;
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K:
      return 0.09f;
    case DType::kQ2_K:
      return 0.5f;
    case DType::kQ3_K:
      return 0.3f;
    case DType::kFP8:
      return 0.036f;
    case DType::kMXFP4:
    case DType::kFP4:
      return 0.26f;
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
      return 0.55f;
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ1_S:
    case DType::kIQ1_M:
    case DType::kQ1_0:
      return 1.0f;
    case DType::kTQ1_0:
    case DType::kTQ2_0:
    case DType::kQ2_0:
      return 0.51f;
    default:
      return 0.18f;
  }
}

TEST(encode, loses_no_more_than_the_format_must) {
  constexpr int64_t kN = 1024;
  testing::SplitMix rng(7);
  std::vector<float> values(kN);
  for (float& value : values) value = rng.uniform(-1.0f, 1.0f);
  for (const DTypeInfo& info : dtype_table()) {
    if (!info.is_weight) continue;
    std::vector<std::byte> blocks(row_bytes(info, kN));
    encode_elements(info.dtype, values.data(), kN, blocks.data());
    std::vector<float> decoded(kN);
    decode_elements(info.dtype, blocks.data(), kN, decoded.data());
    float worst = 0.0f;
    for (size_t i = 0; i < kN; ++i) worst = std::max(worst, std::fabs(decoded[i] - values[i]));
    EXPECT_LE(worst, largest_relative_error(info.dtype)) << info.name;
  }
}

TEST(encode, zeros_stay_zeros) {
  const std::vector<float> zeros(256, 0.0f);
  for (const DTypeInfo& info : dtype_table()) {
    if (!info.is_weight) continue;
    std::vector<std::byte> blocks(row_bytes(info, 256));
    encode_elements(info.dtype, zeros.data(), 256, blocks.data());
    std::vector<float> decoded(256, 1.0f);
    decode_elements(info.dtype, blocks.data(), 256, decoded.data());
    for (const float value : decoded) ASSERT_EQ(value, 0.0f) << info.name;
  }
}

TEST(tensor_view, rows_of_every_format_decode_alone_as_they_do_together) {
  for (const DTypeInfo& info : dtype_table()) {
    if (!info.is_weight) continue;
    const testing::OwnedTensor tensor = testing::random_tensor("w", info.dtype, {3, 512}, 11);
    ASSERT_EQ(tensor.view().n_bytes, 3 * tensor.view().row_bytes());
    std::vector<float> all(3 * 512);
    decode_rows(tensor.view(), all.data());
    for (int64_t r = 0; r < 3; ++r) {
      std::vector<float> row(512);
      decode_row(tensor.view(), r, row.data());
      EXPECT_EQ(std::memcmp(row.data(), all.data() + r * 512, 512 * 4), 0) << info.name;
      for (const float value : row) EXPECT_LT(std::fabs(value), 8.0f) << info.name;
    }
  }
}

TEST(shape, counts_rows_and_elements_and_prints_itself) {
  const Shape cube{3, {2, 3, 4, 0}};
  EXPECT_EQ(cube.n_rows(), 6);
  EXPECT_EQ(cube.row_elements(), 4);
  EXPECT_EQ(cube.n_elements(), 24);
  EXPECT_EQ(to_string(cube), "[2, 3, 4]");
  EXPECT_EQ(Shape{}.n_elements(), 1);
  EXPECT_EQ(to_string(Shape{}), "[]");
}

}  // namespace
}  // namespace candor
