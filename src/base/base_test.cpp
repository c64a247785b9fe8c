#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/exact_math.h"
#include "base/half.h"
#include "base/philox.h"
#include "base/utf8.h"

namespace candor {
namespace {

TEST(half, every_f16_survives_the_round_trip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const f16 h = static_cast<f16>(bits);
    const float f = f16_to_f32(h);
    if (std::isnan(f)) continue;
    EXPECT_EQ(f32_to_f16(f), h) << bits;
  }
}

TEST(half, f16_rounds_to_nearest_even) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), f32_to_f16(1.0f));
  EXPECT_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), f32_to_f16(1.0f + 0x1p-9f));
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 1);
}

TEST(half, bf16_rounds_to_nearest_even_and_flushes_denormals) {
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(f32_to_bf16(0x1p-140f), 0);
}

TEST(philox, matches_the_published_vectors) {
  // Random123's known-answer file, philox4x32 with 10 rounds.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(exact_math, exp_is_within_two_ulp_over_its_range) {
  double worst = 0;
  for (float x = -87.0f; x <= 88.0f; x += 0.00137f) {
    const double exact = std::exp(static_cast<double>(x));
    const float rounded = static_cast<float>(exact);
    const double ulp = static_cast<double>(std::nextafterf(rounded, 1e38f)) - static_cast<double>(rounded);
    worst = std::max(worst, std::abs(static_cast<double>(exp_f32(x)) - exact) / ulp);
  }
  EXPECT_LE(worst, 2.0);
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-1000.0f), 0.0f);
  EXPECT_TRUE(std::isfinite(exp_f32(1000.0f)));
}

TEST(utf8, rejects_surrogates_overlong_forms_and_what_lies_above_unicode) {
  for (const char* bad :
       {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\x80", "\xF8\x88\x80\x80\x80"})
    EXPECT_EQ(first_invalid_utf8(bad), 0u) << bad;
  EXPECT_EQ(first_invalid_utf8("aé€😀"), std::strlen("aé€😀"));
  EXPECT_EQ(decode_utf8("😀", 0).value, 0x1F600u);
}

TEST(utf8, text_cut_within_a_character_shows_one_replacement) {
  EXPECT_EQ(to_valid_utf8("a\xF0\x9F\x98"), "a\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xF0\x9F\x98 b"), "\uFFFD b");
  EXPECT_EQ(to_valid_utf8("\xE2\x82\xE2\x82\xAC"), "\uFFFD\u20AC");
  EXPECT_EQ(to_valid_utf8("\xFF\xFE"), "\uFFFD\uFFFD");          // bytes that begin nothing
  EXPECT_EQ(to_valid_utf8("\x98\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate: its first byte has no valid second
}

TEST(utf8, a_prefix_ends_before_a_code_point_that_may_still_be_completed) {
  EXPECT_EQ(complete_utf8_prefix("ab\xF0\x9F\x98"), 2u);
  EXPECT_EQ(complete_utf8_prefix("ab\xE2\x82"), 2u);
  EXPECT_EQ(complete_utf8_prefix("ab\xC3"), 2u);
  EXPECT_EQ(complete_utf8_prefix("ab€"), 5u);
  EXPECT_EQ(complete_utf8_prefix("ab\xE0\x80"), 4u);  // can never become valid
  EXPECT_EQ(complete_utf8_prefix("ab\x80"), 3u);
  EXPECT_EQ(complete_utf8_prefix(""), 0u);
}

TEST(checked, overflow_is_seen) {
  EXPECT_FALSE(checked_mul<uint64_t>(1ull << 40, 1ull << 40));
  EXPECT_FALSE(checked_add<int32_t>(INT32_MAX, 1));
  EXPECT_EQ(*checked_mul<int64_t>(6, 7), 42);
}

}  // namespace
}  // namespace candor
