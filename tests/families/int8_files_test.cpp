// Folders whose weights are int8 by channel (compressed-tensors): against a plain computation of the same arithmetic
// (make_int8_golden.py), and what is refused.

#include <gtest/gtest.h>

#include <cstring>
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

namespace candor::testing::int8_folders {
namespace {

using nlohmann::json;

constexpr const char* kGolden = "llama_int8";

double error_against(const std::vector<Logits>& seen, const char* file) {
  return relative_error(seen, golden_folder(kGolden) / file);
}

// The reference computes with the numbers that a file means, in f32.
TEST(int8_files, mean_the_numbers_of_their_codes_and_scales) {
  auto file = model::open_model(golden_folder(kGolden));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_LT(error_against(run_golden_prompt(**file, "reference"), "decoded.f32"), 1e-5);
}

// Rounded inputs are 3.7 % away from those that are not. K and V in bf16 move what the next layer rounds by a fraction
// of a step, so that its errors are others of the same size.
TEST(int8_files, are_computed_as_a_plain_computation_rounds_them) {
  auto file = model::open_model(golden_folder(kGolden));
  ASSERT_TRUE(file) << file.error().message;
  const std::vector<Logits> logits = run_golden_prompt(**file, "cpu");
  const double error = error_against(logits, "expected.f32");
  std::printf("  %.2g, of inputs that are not rounded %.2g\n", error, error_against(logits, "decoded.f32"));
  EXPECT_LT(error, 0.05);
}

TEST(int8_files, become_a_gguf_file_of_the_same_bits) {
  const TempFolder folder;
  auto hub = model::open_model(golden_folder(kGolden));
  ASSERT_TRUE(hub) << hub.error().message;
  ASSERT_TRUE(quantize::write_gguf(**hub, folder.path() / "m.gguf", {}));
  auto gguf = model::open_model(folder.path() / "m.gguf");
  ASSERT_TRUE(gguf) << gguf.error().message;
  EXPECT_EQ((*gguf)->find("blk.0.ffn_up.weight")->dtype, DType::kW8A8);
  EXPECT_EQ(run_golden_prompt(**gguf), run_golden_prompt(**hub));
}

TEST(int8_files, other_configurations_are_refused_by_name) {
  const auto refusal = [](const std::string& pointer, const json& value) {
    return refusal_with(kGolden, [&](json& config) {
      config["quantization_config"][json::json_pointer(pointer)] = value;
    });
  };
  const std::string group = "/config_groups/group_0";
  struct Case {
    std::string pointer;
    json value;
    const char* named;
  };
  const Case cases[] = {
      {"/quant_method", "quip", "quant_method is \"quip\""},
      {"/format", "mixed-precision", "format is \"mixed-precision\""},
      {"/kv_cache_scheme", json{{"num_bits", 8}}, "kv_cache_scheme"},
      {"/sparsity_config", json{{"format", "sparse-24-bitmask"}}, "sparsity_config.format"},
      {"/config_groups", json::object(), "config_groups"},
      {group + "/weights/num_bits", 4, "weights.num_bits is 4, expected 8"},
      {group + "/weights/strategy", "tensor", "weights.strategy is \"tensor\", expected \"channel\""},
      {group + "/weights/type", "float", "weights.type is \"float\""},
      {group + "/input_activations/dynamic", false, "input_activations.dynamic is false"},
      {group + "/input_activations/symmetric", false, "input_activations.symmetric is false"},
      {group + "/input_activations", nullptr, "input_activations.type is null"},
      {group + "/output_activations", json{{"num_bits", 8}}, "output_activations"},
  };
  for (const Case& row : cases) {
    const std::string message = refusal(row.pointer, row.value);
    EXPECT_NE(message.find(row.named), std::string::npos) << message;
    EXPECT_NE(message.find("config.json"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_EQ(refusal("/version", "0.9"), "");
}

TEST(int8_files, codes_and_scales_that_do_not_fit_are_refused_by_name) {
  const OwnedTensor codes = random_tensor("a.weight", DType::kF32, {8, 64}, 1);
  TensorView view = codes.view();
  view.dtype = DType::kI8;
  const auto refusal = [&view](const TensorView* scales) {
    const auto joined = model::join_weight({.form = model::HubWeightForm::kInt8Channels}, view,
                                           [scales](const std::string& name) {
                                             EXPECT_EQ(name, "a.weight_scale");
                                             return scales;
                                           });
    return joined ? std::string() : joined.error().message;
  };
  const OwnedTensor scales = tensor_of("a.weight_scale", DType::kF32, {8, 1}, std::vector<float>(8, 1.0f));
  const OwnedTensor few = tensor_of("a.weight_scale", DType::kF32, {7, 1}, std::vector<float>(7, 1.0f));
  EXPECT_EQ(refusal(&scales.view()), "");
  EXPECT_NE(refusal(nullptr).find("'a.weight_scale' is missing"), std::string::npos);
  EXPECT_NE(refusal(&few.view()).find("each of the 8 rows"), std::string::npos);
  view.shape = {2, {8, 60}};
  EXPECT_NE(refusal(&scales.view()).find("[8, 60]"), std::string::npos);
}

}  // namespace
}  // namespace candor::testing::int8_folders
