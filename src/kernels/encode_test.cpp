#include <cmath>
#include <limits>

#include "kernels/test_support.h"

namespace candor::kernels::testing {

namespace {

class encode : public KernelTest {};

std::vector<std::byte> encoded(const KernelTable& table, Encoding encoding, const std::vector<float>& row) {
  const auto n = static_cast<int64_t>(row.size());
  const Buffer buffer(encoded_row_bytes(encoding, n));
  table.encode(encoding, row.data(), n, buffer.data());
  return {buffer.data(), buffer.data() + buffer.size()};
}

}  // namespace

TEST_F(encode, every_instruction_set_writes_the_same_bytes) {
  std::vector<std::vector<float>> rows;
  rows.push_back(random_row(768, 1));
  rows.push_back(random_row(768, 2, 1e-36f));
  rows.push_back(random_row(768, 3, 1e35f));
  rows.push_back(std::vector<float>(768, 0.0f));
  rows.push_back(random_row(768, 4));
  rows.back()[5] = std::numeric_limits<float>::infinity();
  rows.back()[300] = std::numeric_limits<float>::quiet_NaN();
  rows.back()[700] = 1e-42f;
  for (const Encoding encoding : kEncodings) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto expected = encoded(*runnable_tables().front(), encoding, rows[i]);
      for (const KernelTable* table : runnable_tables()) {
        EXPECT_EQ(encoded(*table, encoding, rows[i]), expected) << table->name << " row " << i;
      }
    }
  }
}

TEST_F(encode, int8_codes_are_within_half_a_step_and_sums_are_exact) {
  const std::vector<float> row = random_row(512, 9);
  for (const Encoding encoding : {Encoding::kQ8x256, Encoding::kQ8x32}) {
    const auto bytes = encoded(*runnable_tables().front(), encoding, row);
    const int group = encoding == Encoding::kQ8x256 ? 256 : 32;
    const int sum_group = encoding == Encoding::kQ8x256 ? 16 : 32;
    const auto* codes = reinterpret_cast<const int8_t*>(bytes.data());
    int sum = 0;
    for (int k = 0; k < 512; ++k) {
      float scale;
      std::memcpy(&scale, bytes.data() + encoded_scales_offset(encoding, 512) + 4 * (k / group), 4);
      EXPECT_NEAR(codes[k] * scale, row[static_cast<size_t>(k)], 0.5001f * scale);
      sum += codes[k];
      if (k % sum_group != sum_group - 1) continue;
      int16_t stored;
      std::memcpy(&stored, bytes.data() + encoded_sums_offset(encoding, 512) + 2 * (k / sum_group), 2);
      EXPECT_EQ(stored, sum);
      sum = 0;
    }
  }
}

TEST_F(encode, a_row_with_one_scale_ends_in_zeros_its_sum_and_its_scale) {
  std::vector<float> row = random_row(96, 9);
  row[70] = 8.0f;
  for (const KernelTable* table : runnable_tables()) {
    const auto bytes = encoded(*table, Encoding::kQ8Row, row);
    const auto* codes = reinterpret_cast<const int8_t*>(bytes.data());
    int32_t expected = 0;
    for (size_t k = 0; k < 128; ++k) {
      const float scaled = k < 96 ? row[k] * (127.0f / 8.0f) : 0.0f;
      EXPECT_EQ(codes[k], static_cast<int8_t>(std::nearbyint(scaled))) << table->name << " " << k;
      expected += codes[k];
    }
    int32_t sum = 0;
    float scale = 0.0f;
    std::memcpy(&sum, bytes.data() + encoded_sums_offset(Encoding::kQ8Row, 96), sizeof sum);
    std::memcpy(&scale, bytes.data() + encoded_scales_offset(Encoding::kQ8Row, 96), sizeof scale);
    EXPECT_EQ(sum, expected);
    EXPECT_EQ(scale, 8.0f / 127.0f);
    EXPECT_EQ(bytes.size(), 192u);
  }
}

TEST_F(encode, a_value_that_is_not_finite_makes_the_scale_not_a_number) {
  std::vector<float> row = random_row(512, 9);
  row[400] = -std::numeric_limits<float>::infinity();
  for (const KernelTable* table : runnable_tables()) {
    const auto bytes = encoded(*table, Encoding::kQ8x256, row);
    float scales[2];
    std::memcpy(scales, bytes.data() + encoded_scales_offset(Encoding::kQ8x256, 512), 8);
    EXPECT_TRUE(std::isfinite(scales[0]));
    EXPECT_TRUE(std::isnan(scales[1]));
  }
}

}  // namespace candor::kernels::testing
