// Folders whose weights are codes E4M3 with scales: the numbers that they mean (make_fp8_goldens.py), and what is
// refused.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "changed_golden.h"
#include "golden_logits.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_weights.h"
#include "quantize/quantizer.h"
#include "support/model_runner.h"
#include "support/random_weights.h"
#include "support/temp_folder.h"

namespace candor::testing::fp8_folders {
namespace {

using nlohmann::json;

constexpr const char* kGoldens[] = {"qwen3_fp8", "ministral3_fp8", "llama_fp8", "deepseek_fp8"};

double error_of(const std::vector<Logits>& seen, const char* golden) {
  return relative_error(seen, golden_folder(golden) / "expected.f32");
}

// The reference computes with the numbers that a file means, in f32.
TEST(fp8_files, mean_the_numbers_of_their_codes_and_scales) {
  for (const char* golden : kGoldens) {
    auto file = model::open_model(golden_folder(golden));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_LT(error_of(run_golden_prompt(**file, "reference"), golden), 1e-5) << golden;
  }
}

// Inputs of every matrix, K and V are rounded to bf16, 2^-9 off at most.
TEST(fp8_files, are_computed_with_inputs_in_bf16) {
  for (const char* golden : kGoldens) {
    auto file = model::open_model(golden_folder(golden));
    ASSERT_TRUE(file) << file.error().message;
    const double error = error_of(run_golden_prompt(**file), golden);
    std::printf("  %s %.2g\n", golden, error);
    EXPECT_LT(error, 0.03) << golden;
  }
}

TEST(fp8_files, keep_eight_bits_where_rows_are_whole_blocks) {
  const auto type_of = [](const char* golden, const char* tensor) {
    const auto file = model::open_model(golden_folder(golden));
    return (*file)->find(tensor)->dtype;
  };
  EXPECT_EQ(type_of("qwen3_fp8", "blk.0.ffn_down.weight"), DType::kFP8);
  EXPECT_EQ(type_of("qwen3_fp8", "token_embd.weight"), DType::kBF16);
  EXPECT_EQ(type_of("ministral3_fp8", "blk.1.attn_q.weight"), DType::kFP8);
  EXPECT_EQ(type_of("llama_fp8", "blk.0.ffn_up.weight"), DType::kFP8);
  EXPECT_EQ(type_of("llama_fp8", "blk.0.ffn_down.weight"), DType::kF32);
  EXPECT_EQ(type_of("deepseek_fp8", "blk.0.attn_v_b.weight"), DType::kFP8);
}

TEST(fp8_files, become_a_gguf_file_of_the_same_bits) {
  const TempFolder folder;
  auto hub = model::open_model(golden_folder("qwen3_fp8"));
  ASSERT_TRUE(hub) << hub.error().message;
  ASSERT_TRUE(quantize::write_gguf(**hub, folder.path() / "m.gguf", {}));
  auto gguf = model::open_model(folder.path() / "m.gguf");
  ASSERT_TRUE(gguf) << gguf.error().message;
  EXPECT_EQ((*gguf)->find("blk.0.ffn_up.weight")->dtype, DType::kFP8);
  EXPECT_EQ(run_golden_prompt(**gguf), run_golden_prompt(**hub));
}

// ModelOpt names the same tensors as compressed-tensors.
TEST(fp8_files, modelopts_mean_the_same) {
  const TempFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder("llama_fp8"))) {
    std::filesystem::copy_file(entry.path(), folder.path() / entry.path().filename());
  }
  json config = formats::read_json_file(folder.path() / "config.json", 1 << 20).value();
  config["quantization_config"] = {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}};
  std::ofstream(folder.path() / "config.json") << config.dump();
  const auto file = model::open_model(folder.path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_LT(error_of(run_golden_prompt(**file, "reference"), "llama_fp8"), 1e-5);
}

TEST(fp8_files, other_configurations_are_refused_by_name) {
  struct Case {
    const char* golden;
    std::string pointer;
    json value;
    const char* named;
  };
  const std::string group = "/config_groups/group_0";
  const Case cases[] = {
      {"qwen3_fp8", "/fmt", "e4m3fnuz", "fmt is \"e4m3fnuz\", expected \"e4m3\""},
      {"qwen3_fp8", "/fmt", "e5m2", "fmt is \"e5m2\""},
      {"qwen3_fp8", "/weight_block_size", 128, "weight_block_size is 128"},
      {"qwen3_fp8", "/weight_block_size", json{128, 0}, "weight_block_size is [128,0]"},
      {"qwen3_fp8", "/weight_block_size", json{64, 128}, "of shape [1, 3] for the codes [128, 384]"},
      {"qwen3_fp8", "/weight_block_size", nullptr, "expected F32, BF16 or F16 of one number, or of [128, 1]"},
      {"ministral3_fp8", "/weight_block_size", json{128, 128}, "weight_scale_inv': BF16 of shape []"},
      {"llama_fp8", "/format", "mixed-precision", "format is \"mixed-precision\""},
      {"llama_fp8", "/kv_cache_scheme", json{{"num_bits", 8}}, "kv_cache_scheme"},
      {"llama_fp8", group + "/weights/num_bits", 4, "weights.num_bits is 4, expected 8"},
      {"llama_fp8", group + "/weights/type", "int", "weights.type is \"int\", expected \"float\""},
      {"llama_fp8", group + "/weights/strategy", "group", "weights.strategy is \"group\""},
      {"llama_fp8", group + "/weights/strategy", "block", "weights.block_structure is null"},
      {"llama_fp8", group + "/input_activations/num_bits", 4, "input_activations.num_bits is 4"},
      {"llama_fp8", group + "/output_activations", json{{"num_bits", 8}}, "output_activations"},
      {"llama_fp8", "/config_groups/group_1",
       json{{"weights",
             {{"type", "float"},
              {"num_bits", 8},
              {"symmetric", true},
              {"strategy", "block"},
              {"block_structure", {128, 128}}}}},
       "group_1.weights.block_structure is [128,128]"},
  };
  for (const Case& row : cases) {
    const std::string message = refusal_with(row.golden, [&row](json& config) {
      config["quantization_config"][json::json_pointer(row.pointer)] = row.value;
    });
    EXPECT_NE(message.find(row.named), std::string::npos) << row.named << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(fp8_files, what_activations_would_be_rounded_to_does_not_matter) {
  const auto refusal = [](const char* golden, const std::string& pointer, const json& value) {
    return refusal_with(golden, [&](json& config) {
      config["quantization_config"][json::json_pointer(pointer)] = value;
    });
  };
  EXPECT_EQ(refusal("qwen3_fp8", "/activation_scheme", "static"), "");
  EXPECT_EQ(refusal("llama_fp8", "/config_groups/group_0/input_activations", nullptr), "");
}

// Codes [256, 384] in blocks of 128 x 128, whose parts a test may change or take away.
class Fp8Parts : public ::testing::Test {
 protected:
  Fp8Parts() { put("a.weight", DType::kF8_E4M3, {2, {256, 384}}); }
  void put(const std::string& name, DType dtype, Shape shape) {
    const auto n_bytes = static_cast<size_t>(shape.n_elements() * dtype_info(dtype).block_bytes);
    const auto at = bytes_.insert_or_assign(name, std::vector<std::byte>(n_bytes)).first;
    views_[name] = {at->first, dtype, shape, at->second.data(), n_bytes};
  }
  Result<std::optional<model::JoinedWeight>> join(model::HubWeights weights) {
    weights.form = model::HubWeightForm::kFp8;
    return model::join_weight(weights, views_["a.weight"], [this](const std::string& name) {
      return views_.contains(name) ? &views_[name] : nullptr;
    });
  }
  std::string refusal(const model::HubWeights& weights) {
    const auto joined = join(weights);
    return joined ? "" : joined.error().message;
  }

  const model::HubWeights blocks_{.block_rows = 128, .block_columns = 128, .scale_end = "_scale_inv"};
  const model::HubWeights whole_{};
  std::map<std::string, std::vector<std::byte>> bytes_;
  std::map<std::string, TensorView> views_;
};

TEST_F(Fp8Parts, that_are_missing_are_named) {
  EXPECT_NE(refusal(blocks_).find("'a.weight_scale_inv' is missing"), std::string::npos) << refusal(blocks_);
  EXPECT_NE(refusal(whole_).find("'a.weight_scale' is missing"), std::string::npos) << refusal(whole_);
}

TEST_F(Fp8Parts, whose_shapes_contradict_are_refused) {
  put("a.weight_scale_inv", DType::kF32, {2, {2, 3}});
  EXPECT_EQ(refusal(blocks_), "");
  put("a.weight_scale_inv", DType::kF32, {2, {3, 2}});
  EXPECT_EQ(refusal(blocks_),
            "tensor 'a.weight_scale_inv': F32 of shape [3, 2] for the codes [256, 384] of 'a.weight'; expected F32, "
            "BF16 or F16 of [2, 3], a scale for each block of 128 x 128");
  put("a.weight_scale_inv", DType::kI8, {2, {2, 3}});
  EXPECT_NE(refusal(blocks_).find("I8 of shape [2, 3]"), std::string::npos) << refusal(blocks_);
  for (const Shape& fits : {Shape{2, {256, 1}}, Shape{1, {256}}, Shape{1, {1}}, Shape{}}) {
    put("a.weight_scale", DType::kBF16, fits);
    EXPECT_EQ(refusal(whole_), "");
  }
  for (const Shape& other : {Shape{2, {1, 256}}, Shape{2, {2, 3}}, Shape{1, {384}}}) {
    put("a.weight_scale", DType::kBF16, other);
    EXPECT_NE(refusal(whole_).find("expected F32, BF16 or F16 of one number"), std::string::npos) << refusal(whole_);
  }
}

TEST_F(Fp8Parts, that_are_no_matrix_are_refused) {
  put("a.weight", DType::kF8_E4M3, {3, {2, 128, 128}});
  EXPECT_NE(refusal(blocks_).find("[2, 128, 128]; expected a matrix"), std::string::npos) << refusal(blocks_);
}

TEST_F(Fp8Parts, with_scales_inside_a_block_of_128_become_f32) {
  put("a.weight_scale_inv", DType::kF32, {2, {4, 6}});
  const model::HubWeights fine{.block_rows = 64, .block_columns = 64, .scale_end = "_scale_inv"};
  for (int i = 0; i < 24; ++i) {
    const auto scale = static_cast<float>(i);
    std::memcpy(bytes_["a.weight_scale_inv"].data() + 4 * i, &scale, 4);
  }
  std::fill(bytes_["a.weight"].begin(), bytes_["a.weight"].end(), std::byte{0x38});  // 1
  const auto joined = join(fine);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ((*joined)->dtype, DType::kF32);
  std::vector<float> values(256 * 384);
  (*joined)->fill(reinterpret_cast<std::byte*>(values.data()));
  for (size_t row = 0; row < 256; ++row) {
    for (size_t k = 0; k < 384; ++k) ASSERT_EQ(values[row * 384 + k], static_cast<float>(row / 64 * 6 + k / 64));
  }
}

}  // namespace
}  // namespace candor::testing::fp8_folders
