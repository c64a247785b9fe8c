// Folders whose weights have 4 bits as GPTQ and AWQ pack them: the numbers that they mean (make_int4_goldens.py), and
// what is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/all/make_backend.h"
#include "changed_golden.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_weights.h"
#include "support/model_runner.h"
#include "support/random_weights.h"

namespace candor::testing::int4_folders {
namespace {

using nlohmann::json;

constexpr int32_t kTokens = 48;
constexpr int32_t kVocab = 288;

// The reference computes with the numbers that a file means, in f32.
TEST(int4_files, give_the_logits_of_the_numbers_that_they_mean) {
  for (const char* golden : {"llama_gptq", "llama_awq"}) {
    auto file = model::open_model(golden_folder(golden));
    ASSERT_TRUE(file) << golden;
    const auto runner = ModelRunner::make(**file, *backend::make_backend("reference", {.n_threads = 1}),
                                          {.max_rows = kTokens, .n_blocks = 4});
    ASSERT_NE(runner, nullptr);
    std::vector<TokenId> prompt;
    for (int32_t i = 0; i < kTokens; ++i) prompt.push_back((37 * i * i + 11 * i + 5) % kVocab);
    std::ifstream stream(golden_folder(golden) / "expected.f32", std::ios::binary);
    float worst = 0.0f;
    float largest = 0.0f;
    for (const Logits& row : runner->run(prompt, kTokens)) {
      for (const float logit : row) {
        float expected = 0.0f;
        stream.read(reinterpret_cast<char*>(&expected), sizeof expected);
        worst = std::max(worst, std::fabs(logit - expected));
        largest = std::max(largest, std::fabs(expected));
      }
    }
    EXPECT_TRUE(stream.good());
    EXPECT_GT(largest, 0.1f);
    EXPECT_LE(worst, 1e-4f * largest) << golden;
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
      {"llama_gptq", "bits", 8, "bits is 8, expected 4"},
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

TEST_F(Int4Parts, whose_groups_follow_the_activations_are_refused) {
  words("a.g_idx")[40] = 0;
  EXPECT_NE(refusal().find("desc_act"), std::string::npos) << refusal();
}

TEST_F(Int4Parts, whose_scales_no_half_can_hold_are_refused) {
  const float scale = 1.0f + 0x1p-20f;
  std::memcpy(words("a.scales") + 3, &scale, sizeof scale);
  EXPECT_NE(refusal().find("is no f16"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace candor::testing::int4_folders
