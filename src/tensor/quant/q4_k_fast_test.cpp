#include "tensor/quant/q4_k_fast.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/random_weights.h"

namespace candor::quant {
namespace {

using candor::testing::SplitMix;
using Values = std::array<float, kSuperBlock>;

constexpr f16 kInfinity = 0x7c00;
constexpr f16 kNan = 0x7e00;
constexpr f16 kSmallest = 0x0001;  // subnormal
constexpr f16 kLargest = 0x7bff;

BlockQ4_K random_block(uint64_t seed, f16 d, f16 dmin) {
  SplitMix rng(seed);
  BlockQ4_K block;
  auto* bytes = reinterpret_cast<std::byte*>(&block);
  for (size_t i = 0; i < sizeof block; ++i) bytes[i] = static_cast<std::byte>(rng.below(256));
  block.d = d;
  block.dmin = dmin;
  return block;
}

Values values_of(const BlockQ4_K& block) {
  Values values;
  decode_block(block, values.data());
  return values;
}

Values rebased_values_of(const BlockQ4_K& block) {
  Values values;
  decode_block(BlockQ4_KFast{block}, values.data());
  return values;
}

double distance(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return sum;
}

// Every code's integer is in its range, and every value within 1.5 D: b errs by half, the cut of a * q by as much
// around its mean, and a by half of 1/16 at 7.5 codes from the middle.
void expect_close(const BlockQ4_K& block, const char* what) {
  const RebasedQ4_K rebased = rebase(block);
  for (int j = 0; j < 8; ++j) {
    for (int q = 0; q < 16; ++q) {
      const int w = rebased_weight(q, rebased.a[j], rebased.b[j]);
      ASSERT_LE(std::abs(w), 127) << what << " group " << j << " code " << q;
    }
  }
  const Values expected = values_of(block);
  const Values found = rebased_values_of(block);
  const double bound = 1.5 * std::fabs(double{rebased.d});
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_LE(std::fabs(double{expected[i]} - double{found[i]}), bound) << what << " element " << i;
  }
}

// What rebasing adds to Q4_K's own error power, for weights as encoded from `draw`.
template <class Draw>
double added_share(const Draw& draw) {
  SplitMix rng(5);
  double own = 0;
  double added = 0;
  for (int i = 0; i < 200; ++i) {
    Values source;
    for (float& x : source) x = 0.02f * draw(rng);
    BlockQ4_K block;
    encode_block(source.data(), block);
    own += distance(source, values_of(block));
    added += distance(values_of(block), rebased_values_of(block));
  }
  return added / own;
}

float laplace(SplitMix& rng) {
  const float u = rng.uniform(1e-6f, 1.0f);
  return rng.below(2) == 0 ? std::log(u) : -std::log(u);
}

}  // namespace

TEST(q4_k_fast, rebasing_adds_less_than_a_twentieth_to_the_error_power_of_q4_k) {
  const double normal = added_share([](SplitMix& rng) { return rng.normal(); });
  const double heavy = added_share(laplace);
  // One weight of 64 is eight times as large: the scale of all is that of the few.
  const double outliers = added_share([](SplitMix& rng) { return rng.normal() * (rng.below(64) == 0 ? 8.0f : 1.0f); });
  EXPECT_LT(normal, 0.02);
  EXPECT_LT(heavy, 0.05);
  EXPECT_LT(outliers, 0.1);
  RecordProperty("shares", std::to_string(normal) + " " + std::to_string(heavy) + " " + std::to_string(outliers));
}

TEST(q4_k_fast, values_stay_within_one_and_a_half_steps_for_any_scales) {
  const f16 one = f32_to_f16(0.001f);
  const f16 minus = f32_to_f16(-0.001f);
  const f16 large = f32_to_f16(0.5f);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    for (const f16 d : {one, minus, large, f16{0}, kSmallest, kLargest}) {
      for (const f16 dmin : {one, minus, large, f16{0}, kSmallest, kLargest}) {
        expect_close(random_block(seed, d, dmin), "random");
      }
    }
  }
}

TEST(q4_k_fast, groups_of_one_value_only_stay_what_they_are) {
  BlockQ4_K block = random_block(1, f32_to_f16(0.01f), f32_to_f16(0.02f));
  ScaleMin groups[8];
  for (int j = 0; j < 8; ++j) groups[j] = {0, static_cast<uint8_t>(j == 0 ? 63 : 7 * j)};
  pack_scale_mins(groups, block.scales);
  const Values expected = values_of(block);
  const Values found = rebased_values_of(block);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.51f * rebase(block).d) << i;
  EXPECT_FLOAT_EQ(found[0], expected[0]) << "the largest is a whole number of steps";
}

TEST(q4_k_fast, a_block_of_zeros_stays_one) {
  const RebasedQ4_K rebased = rebase(random_block(1, 0, 0));
  EXPECT_EQ(rebased.d, 0.0f);
  for (const float value : rebased_values_of(random_block(1, 0, 0))) EXPECT_EQ(value, 0.0f);
}

TEST(q4_k_fast, scales_that_are_not_finite_give_no_plausible_number) {
  for (const f16 bad : {kInfinity, kNan}) {
    for (const float value : rebased_values_of(random_block(2, bad, f32_to_f16(1.0f)))) EXPECT_TRUE(std::isnan(value));
    for (const float value : rebased_values_of(random_block(2, f32_to_f16(1.0f), bad))) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(q4_k_fast, no_file_can_name_it) {
  EXPECT_EQ(find_dtype(static_cast<uint32_t>(DType::kQ4_KFast)), nullptr);
  EXPECT_EQ(find_dtype(dtype_info(DType::kQ4_KFast).name), nullptr);
}

}  // namespace candor::quant
