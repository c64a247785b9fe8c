// Folders whose weights have 2 to 8 bits as GPTQ and AWQ pack them: the numbers that they mean (make_int4_goldens.py),
// and what is refused.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "changed_golden.h"
#include "golden_logits.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_weights.h"
#include "support/random_weights.h"

namespace candor::testing::int4_folders {
namespace {

using nlohmann::json;

// The reference computes with the numbers that a file means, in f32.
TEST(int4_files, give_the_logits_of_the_numbers_that_they_mean) {
  for (const char* golden : {"llama_gptq", "llama_awq"}) {
    auto file = model::open_model(golden_folder(golden));
    ASSERT_TRUE(file) << golden;
    expect_golden_logits(**file, golden_folder(golden) / "expected.f32");
  }
}

TEST(int4_files, take_four_bits_where_every_zero_point_is_the_middle) {
  const auto gptq = model::open_model(golden_folder("llama_gptq"));
  ASSERT_TRUE(gptq) << gptq.error().message;
  EXPECT_EQ((*gptq)->find("blk.0.ffn_up.weight")->dtype, DType::kQ4_0);
  EXPECT_EQ((*gptq)->find("blk.1.ffn_up.weight")->dtype, DType::kQ5_0);
  EXPECT_EQ((*gptq)->find("output.weight")->dtype, DType::kBF16);
}

TEST(int4_files, other_configurations_are_refused_by_name) {
  struct Case {
    const char* golden;
    const char* key;
    json value;
    const char* named;
  };
  const Case cases[] = {
      {"llama_gptq", "bits", 5, "bits is 5, expected 2, 3, 4 or 8"},
      {"llama_gptq", "bits", 8, "64 outputs of 48 inputs in groups of 32"},
      {"llama_gptq", "group_size", "many", "group_size is \"many\""},
      {"llama_gptq", "group_size", 48, "groups of 48"},
      {"llama_gptq", "group_size", 64, "in groups of 64"},
      {"llama_gptq", "group_size", -1, "does not fit its matrix"},
      {"llama_gptq", "checkpoint_format", "marlin", "checkpoint_format is \"marlin\""},
      {"llama_gptq", "lm_head", true, "lm_head is true"},
      {"llama_gptq", "dynamic", json{{"+:.*", {{"bits", 8}}}}, "dynamic"},
      {"llama_awq", "version", "gemv", "version is \"gemv\""},
      {"llama_awq", "bits", 3, "bits is 3"},
  };
  for (const Case& row : cases) {
    const std::string message =
        refusal_with(row.golden, [&row](json& config) { config["quantization_config"][row.key] = row.value; });
    EXPECT_NE(message.find(row.named), std::string::npos) << row.named << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

// The parts of a matrix of 64 inputs and 8 outputs in two groups, each of which a test may change or take away.
class Int4Parts : public ::testing::Test {
 protected:
  Int4Parts() {
    put("a.qweight", DType::kI32, {2, {8, 8}});
    put("a.qzeros", DType::kI32, {2, {2, 1}});
    put("a.scales", DType::kF32, {2, {2, 8}});
    put("a.g_idx", DType::kI32, {1, {64}});
    for (int32_t k = 32; k < 64; ++k) words("a.g_idx")[k] = 1;
  }
  void put(const std::string& name, DType dtype, Shape shape) {
    const auto at = words_.emplace(name, std::vector<int32_t>(static_cast<size_t>(shape.n_elements()))).first;
    views_[name] = {at->first, dtype, shape, reinterpret_cast<std::byte*>(at->second.data()), 4 * at->second.size()};
  }
  int32_t* words(const std::string& name) { return words_[name].data(); }
  std::string refusal() {
    const model::HubWeights weights{.form = model::HubWeightForm::kGptq, .group = 32, .has_lowered_zeros = true};
    const auto joined = model::join_weight(weights, views_["a.qweight"], [this](const std::string& name) {
      return views_.contains(name) ? &views_[name] : nullptr;
    });
    return joined ? "" : joined.error().message;
  }

  std::map<std::string, std::vector<int32_t>> words_;
  std::map<std::string, TensorView> views_;
};

TEST_F(Int4Parts, that_fit_are_taken) {
  EXPECT_EQ(refusal(), "");
  views_.erase("a.g_idx");
  EXPECT_EQ(refusal(), "");
}

TEST_F(Int4Parts, that_are_missing_are_named) {
  views_.erase("a.qzeros");
  EXPECT_NE(refusal().find("'a.qzeros' is missing"), std::string::npos) << refusal();
}

TEST_F(Int4Parts, whose_groups_do_not_exist_are_refused) {
  words("a.g_idx")[40] = 2;
  EXPECT_NE(refusal().find("input 40 is of group 2, but there are 2"), std::string::npos) << refusal();
  words("a.g_idx")[40] = -1;
  EXPECT_NE(refusal().find("input 40 is of group 4294967295"), std::string::npos) << refusal();
}

// 64 inputs in two groups and 32 outputs of any width, as their library packs them: number i at bit i * bits.
class GptqOf : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int64_t kIn = 64;
  static constexpr int64_t kOut = 32;

  GptqOf() : bits_(GetParam()) {
    SplitMix random(static_cast<uint64_t>(bits_));
    const auto below = [&](int n) { return static_cast<int>(random.below(static_cast<uint64_t>(n))); };
    for (int& code : codes_) code = below(1 << bits_);
    for (int& zero : zeros_) zero = bits_ == 8 ? 128 : 1 + below(1 << bits_);
    for (float& scale : scales_) scale = static_cast<float>(1 + below(64)) * 0x1p-9f;
  }
  void pack(std::vector<int32_t>& words, int64_t first, int64_t step, int64_t i, int value) const {
    for (int bit = 0; bit < bits_; ++bit) {
      const int64_t at = i * bits_ + bit;
      auto& word = words[static_cast<size_t>(first + at / 32 * step)];
      word = static_cast<int32_t>(static_cast<uint32_t>(word) | static_cast<uint32_t>(value >> bit & 1) << (at % 32));
    }
  }
  int code(int64_t k, int64_t output) const { return codes_[static_cast<size_t>(k * kOut + output)]; }
  // group_of(k): of two.
  template <class GroupOf>
  std::vector<float> expected(GroupOf&& group_of) const {
    std::vector<float> values;
    for (int64_t output = 0; output < kOut; ++output) {
      for (int64_t k = 0; k < kIn; ++k) {
        const auto at = static_cast<size_t>(group_of(k) * kOut + output);
        values.push_back(scales_[at] * static_cast<float>(code(k, output) - zeros_[at]));
      }
    }
    return values;
  }
  // order: of g_idx; empty: none.
  std::pair<DType, std::vector<float>> read(std::vector<int32_t> order) {
    std::vector<int32_t> codes(static_cast<size_t>(kIn * bits_ / 32 * kOut));
    std::vector<int32_t> zeros(static_cast<size_t>(2 * kOut * bits_ / 32));
    for (int64_t output = 0; output < kOut; ++output) {
      for (int64_t k = 0; k < kIn; ++k) pack(codes, output, kOut, k, code(k, output));
      for (int64_t g = 0; g < 2; ++g) {
        pack(zeros, g * kOut * bits_ / 32, 1, output, zeros_[static_cast<size_t>(g * kOut + output)] - 1);
      }
    }
    std::map<std::string, TensorView> views;
    const auto put = [&](const char* name, DType dtype, Shape shape, auto& values) {
      views[name] = {name, dtype, shape, reinterpret_cast<const std::byte*>(values.data()), 4 * values.size()};
    };
    put("a.qweight", DType::kI32, {2, {kIn * bits_ / 32, kOut}}, codes);
    put("a.qzeros", DType::kI32, {2, {2, kOut * bits_ / 32}}, zeros);
    put("a.scales", DType::kF32, {2, {2, kOut}}, scales_);
    if (!order.empty()) put("a.g_idx", DType::kI32, {1, {kIn}}, order);
    const auto joined = model::join_weight(
        {.form = model::HubWeightForm::kGptq, .bits = bits_, .group = 32, .has_lowered_zeros = true},
        views["a.qweight"], [&](const std::string& name) { return views.contains(name) ? &views[name] : nullptr; });
    EXPECT_TRUE(joined && *joined) << (joined ? "" : joined.error().message);
    if (!joined || !*joined) return {};
    std::vector<std::byte> data(*tensor_bytes_of((*joined)->dtype, (*joined)->shape));
    (*joined)->fill(data.data());
    std::vector<float> values(static_cast<size_t>(kIn * kOut));
    const TensorView made{"a", (*joined)->dtype, (*joined)->shape, data.data(), data.size()};
    for (int64_t row = 0; row < kOut; ++row) decode_row(made, row, values.data() + row * kIn);
    return {(*joined)->dtype, values};
  }

  const int bits_;
  std::array<int, kIn * kOut> codes_{};
  std::array<int, 2 * kOut> zeros_{};
  std::vector<float> scales_ = std::vector<float>(2 * kOut);
};

TEST_P(GptqOf, every_width_means_its_numbers) {
  const auto [dtype, values] = read({});
  EXPECT_EQ(dtype, bits_ == 8 ? DType::kQ8_0 : bits_ == 4 ? DType::kQ5_0 : DType::kQ4_0);
  EXPECT_EQ(values, expected([](int64_t k) { return k / 32; }));
}

TEST_P(GptqOf, groups_may_follow_the_activations) {
  std::vector<int32_t> order;
  for (int32_t k = 0; k < kIn; ++k) order.push_back(k * 7 % 5 % 2);
  const auto [dtype, values] = read(order);
  EXPECT_EQ(dtype, DType::kF16);
  std::vector<float> rounded = expected([&](int64_t k) { return int64_t{order[static_cast<size_t>(k)]}; });
  for (float& value : rounded) value = f16_to_f32(f32_to_f16(value));
  EXPECT_EQ(values, rounded);
}

INSTANTIATE_TEST_SUITE_P(bits, GptqOf, ::testing::Values(2, 3, 4, 8));

TEST_F(Int4Parts, whose_scales_no_half_can_hold_are_refused) {
  const float scale = 1.0f + 0x1p-20f;
  std::memcpy(words("a.scales") + 3, &scale, sizeof scale);
  EXPECT_NE(refusal().find("is no f16"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace candor::testing::int4_folders
