#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quantize/recipe.h"
#include "quantize/search.h"
#include "tensor/encode.h"
#include "tensor/quant/mxfp4.h"
#include "tensor/quant/w8a8.h"

namespace candor::quantize {
namespace {

std::vector<float> random_row(size_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<float> row(n);
  for (float& x : row) x = normal(engine);
  return row;
}

double squared_error(DType dtype, const std::vector<float>& row, bool is_searched) {
  const int64_t n = static_cast<int64_t>(row.size());
  std::vector<std::byte> bytes(row_bytes(dtype_info(dtype), n));
  if (is_searched) {
    encode_searched(dtype, row.data(), nullptr, n, bytes.data());
  } else {
    encode_elements(dtype, row.data(), n, bytes.data());
  }
  std::vector<float> decoded(row.size());
  decode_elements(dtype, bytes.data(), n, decoded.data());
  double sum = 0.0;
  for (size_t i = 0; i < row.size(); ++i) sum += std::pow(static_cast<double>(decoded[i] - row[i]), 2);
  return sum;
}

// Normal weights: how much of the error of extremes-only scales is left, with room above what was measured.
TEST(search, loses_less_than_scales_from_extremes) {
  const std::vector<float> row = random_row(256 * 64, 1);
  for (const auto& [dtype, share] : {std::pair{DType::kQ2_K, 0.75},
                                     {DType::kQ3_K, 0.9},
                                     {DType::kQ4_K, 0.9},
                                     {DType::kQ5_K, 0.95},
                                     {DType::kQ6_K, 0.98},
                                     {DType::kQ4_0, 0.95},
                                     {DType::kQ5_0, 0.98},
                                     {DType::kIQ4_NL, 0.95},
                                     {DType::kIQ4_XS, 0.95},
                                     {DType::kMXFP4, 0.98},
                                     {DType::kIQ2_XXS, 0.95},
                                     {DType::kIQ2_XS, 0.95},
                                     {DType::kIQ2_S, 0.95},
                                     {DType::kIQ3_XXS, 0.95},
                                     {DType::kIQ3_S, 0.95}}) {
    const double searched = squared_error(dtype, row, true);
    const double plain = squared_error(dtype, row, false);
    EXPECT_LT(searched, share * plain) << dtype_info(dtype).name << " " << searched / plain;
  }
}

TEST(search, blocks_of_zeros_of_one_value_and_of_huge_ones_decode_to_finite_numbers) {
  for (const float value : {0.0f, 1.0f, -3.5f, 1e-30f, 1e4f}) {
    const std::vector<float> row(256, value);
    for (const DType dtype : {DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kQ4_0,
                              DType::kIQ4_NL, DType::kIQ4_XS, DType::kIQ3_S}) {
      const double error = squared_error(dtype, row, true);
      const double share = dtype == DType::kIQ3_S ? 0.2 : 0.05;  // its grid lacks most vectors of one value
      EXPECT_LE(error, 256 * std::pow(share * static_cast<double>(std::fabs(value)) + 1e-12, 2))
          << dtype_info(dtype).name << " " << value;
    }
  }
}

// The error of the columns that matter falls, at the cost of the others.
TEST(search, errors_of_columns_that_matter_count) {
  const std::vector<float> row = random_row(256 * 16, 3);
  std::vector<float> importance(row.size(), 1.0f);
  for (size_t i = 0; i < row.size(); i += 4) importance[i] = 100.0f;
  for (const DType dtype :
       {DType::kQ3_K, DType::kQ4_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kIQ2_XXS, DType::kIQ3_S}) {
    double errors[2] = {};
    for (const bool is_weighted : {false, true}) {
      std::vector<std::byte> bytes(row_bytes(dtype_info(dtype), static_cast<int64_t>(row.size())));
      std::vector<float> decoded(row.size());
      encode_searched(dtype, row.data(), is_weighted ? importance.data() : nullptr, static_cast<int64_t>(row.size()),
                      bytes.data());
      decode_elements(dtype, bytes.data(), static_cast<int64_t>(row.size()), decoded.data());
      for (size_t i = 0; i < row.size(); i += 4) {
        errors[is_weighted ? 1 : 0] += std::pow(static_cast<double>(decoded[i] - row[i]), 2);
      }
    }
    EXPECT_LT(errors[1], 0.9 * errors[0]) << dtype_info(dtype).name;
  }
}

TensorView view_of(std::string_view name, Shape shape) {
  return {name, DType::kF32, shape, nullptr, 0};
}

TEST(recipe, mixed_types_give_more_bits_where_the_output_is_sensitive) {
  const Recipe recipe = *find_recipe("q4_k_m");
  const ModelShape shape{.n_layers = 16, .n_heads_per_kv = 4, .n_experts = 0, .is_tied = true};
  const auto type = [&](std::string_view name) { return type_for(recipe, {}, shape, view_of(name, {2, {512, 512}})); };
  EXPECT_EQ(type("blk.0.attn_q.weight"), DType::kQ4_K);
  EXPECT_EQ(type("blk.0.ffn_down.weight"), DType::kQ6_K);
  EXPECT_EQ(type("blk.3.ffn_down.weight"), DType::kQ4_K);
  EXPECT_EQ(type("token_embd.weight"), DType::kQ6_K);
  EXPECT_EQ(type("blk.3.ffn_gate_inp.weight"), DType::kF32);
  EXPECT_EQ(type_for(recipe, {}, shape, view_of("blk.0.attn_norm.weight", {1, {512}})), DType::kF32);
  for (const char* small : {"position_embd.weight", "token_types.weight", "cls.output.weight", "dense_2.weight"}) {
    EXPECT_EQ(type(small), DType::kF32) << small;
  }
  EXPECT_EQ(type_for(recipe, {}, shape, view_of("blk.3.attn_q.weight", {2, {64, 96}})), DType::kQ5_0);
  EXPECT_EQ(type_for(recipe, {}, shape, view_of("blk.3.attn_q.weight", {2, {64, 20}})), DType::kF16);
}

TEST(recipe, int8_by_channel_is_for_blocks_and_keeps_scales_of_32_for_head_and_embedding) {
  const Recipe recipe = *find_recipe("w8a8");
  const auto type = [&](std::string_view name, Shape shape) { return type_for(recipe, {}, {}, view_of(name, shape)); };
  EXPECT_EQ(type("blk.0.attn_q.weight", {2, {64, 96}}), DType::kW8A8);
  EXPECT_EQ(type("blk.0.ffn_up_exps.weight", {3, {4, 64, 96}}), DType::kW8A8);
  EXPECT_EQ(type("output.weight", {2, {64, 96}}), DType::kQ8_0);
  EXPECT_EQ(type("token_embd.weight", {2, {64, 96}}), DType::kQ8_0);
  EXPECT_EQ(type("blk.0.ffn_down.weight", {2, {64, 20}}), DType::kF16);
  EXPECT_EQ(type("blk.0.ffn_down.weight", {2, {64, quant::kMostW8A8Elements + 32}}), DType::kQ8_0);
}

TEST(recipe, fp4_is_for_experts_and_for_the_blocks_of_models_without) {
  const Recipe recipe = *find_recipe("mxfp4");
  const auto type = [&](std::string_view name, int32_t n_experts) {
    return type_for(recipe, {}, {.n_experts = n_experts}, view_of(name, {2, {64, 96}}));
  };
  EXPECT_EQ(type("blk.0.ffn_up_exps.weight", 4), DType::kMXFP4);
  EXPECT_EQ(type("blk.0.attn_q.weight", 4), DType::kQ8_0);
  EXPECT_EQ(type("blk.0.attn_q.weight", 0), DType::kMXFP4);
  EXPECT_EQ(type("output.weight", 0), DType::kQ8_0);
  EXPECT_EQ(type("token_embd.weight", 0), DType::kQ8_0);
}

// What a checkpoint has in this type stays as it is.
TEST(search, fp4_finds_the_exponent_that_loses_nothing) {
  std::vector<float> row(64);
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = std::ldexp(static_cast<float>(quant::kFp4TwiceValues[i % 16]), i < 32 ? -7 : 3);
  }
  EXPECT_EQ(squared_error(DType::kMXFP4, row, true), 0.0);
}

TEST(recipe, overrides_win_the_last_first) {
  const Recipe recipe = *find_recipe("Q8_0");
  const std::vector<Override> overrides = {*parse_override("blk.*.ffn_*=q4_0"), *parse_override("blk.1.*=f16")};
  const auto type = [&](std::string_view name) {
    return type_for(recipe, overrides, {}, view_of(name, {2, {64, 64}}));
  };
  EXPECT_EQ(type("blk.0.ffn_up.weight"), DType::kQ4_0);
  EXPECT_EQ(type("blk.1.ffn_up.weight"), DType::kF16);
  EXPECT_EQ(type("blk.0.attn_q.weight"), DType::kQ8_0);
}

TEST(recipe, overrides_name_tensors_that_are_there) {
  const std::vector<TensorView> tensors = {view_of("token_embd.weight", {2, {64, 64}}),
                                           view_of("blk.0.ffn_up.weight", {2, {64, 64}})};
  const auto refusal = [&](std::string_view text) -> std::string {
    const std::vector<Override> overrides = {*parse_override("blk.*=q8_0"), *parse_override(text)};
    const auto checked = check_overrides(overrides, tensors);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal("*ffn_up.weight=q4_0"), "");
  EXPECT_NE(refusal("token_embd=q8_0")
                .find("'token_embd': the model has no tensor of this name; write it whole, as "
                      "'token_embd.weight'"),
            std::string::npos);
  EXPECT_NE(refusal("nothing*=q8_0").find("'nothing*'"), std::string::npos);
}

TEST(recipe, unknown_types_are_refused_with_the_known_ones) {
  EXPECT_NE(find_recipe("q9").error().message.find("Q4_K_M"), std::string::npos);
  for (const char* text : {"", "=q8_0", "blk.0", "blk.0=q9", "a=Q8_K"}) {
    EXPECT_FALSE(parse_override(text)) << text;
  }
}

}  // namespace
}  // namespace candor::quantize
