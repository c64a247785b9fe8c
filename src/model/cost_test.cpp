#include "model/cost.h"

#include <gtest/gtest.h>

namespace candor::model {
namespace {

TEST(cost, a_model_of_seven_billion_on_paper) {
  const Hardware machine{"", "", 312e12, 2e12, ""};
  EXPECT_DOUBLE_EQ(memory_seconds(weight_bytes_at(7e9, 16), machine) * 1e3, 7.0);
  EXPECT_NEAR(answer_ms(0, 14, 128), 1792.0, 1e-9);
}

TEST(cost, an_answer_is_its_first_token_and_the_rest) {
  EXPECT_DOUBLE_EQ(answer_ms(300, 20, 50), 1300.0);
  EXPECT_DOUBLE_EQ(answer_ms(300, 20, 50) / 50, 26.0);
}

TEST(cost, keys_and_values_of_a_large_model) {
  const KvShape shape{80, 64, 128, 2};
  EXPECT_NEAR(kv_bytes_per_token(shape) / 1e6, 2.62, 0.005);
  EXPECT_NEAR(kv_bytes_per_token(shape) * 4096 / 1e9, 10.7, 0.05);
  EXPECT_NEAR(kv_bytes_per_token(shape) * 4000 / 1e9, 10.5, 0.05);
}

TEST(cost, seventy_billion_weights_at_four_precisions) {
  EXPECT_DOUBLE_EQ(weight_bytes_at(70e9, 32), 280e9);
  EXPECT_DOUBLE_EQ(weight_bytes_at(70e9, 16), 140e9);
  EXPECT_DOUBLE_EQ(weight_bytes_at(70e9, 8), 70e9);
  EXPECT_DOUBLE_EQ(weight_bytes_at(70e9, 4), 35e9);
}

TEST(cost, a_cache_saves_projections) {
  EXPECT_NEAR(projection_savings(100, 500), 291.2, 0.06);
  EXPECT_NEAR(projection_savings(500, 500), 374.8, 0.06);
  EXPECT_NEAR(projection_savings(1000, 500), 416.5, 0.06);
  EXPECT_NEAR(projection_savings(2000, 500), 449.9, 0.06);
}

TEST(cost, known_machines_have_both_rates) {
  for (const Hardware& hardware : known_hardware()) {
    EXPECT_GT(hardware.flops, 0) << hardware.name;
    EXPECT_GT(hardware.bytes_per_s, 0) << hardware.name;
    EXPECT_EQ(find_hardware(hardware.name), &hardware);
  }
  EXPECT_EQ(find_hardware("abacus"), nullptr);
}

}  // namespace
}  // namespace candor::model
