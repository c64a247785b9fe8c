// Folders whose weights are packed as compressed-tensors packs them, and AutoRound's, which are GPTQ's and AWQ's under
// another name: the numbers that they mean (make_packed_goldens.py), and what is refused.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/half.h"
#include "changed_golden.h"
#include "golden_logits.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_weights.h"
#include "support/random_weights.h"

namespace candor::testing::packed_folders {
namespace {

using nlohmann::json;

// The reference computes with the numbers that a file means, in f32.
TEST(packed_files, give_the_logits_of_the_numbers_that_they_mean) {
  auto file = model::open_model(golden_folder("llama_packed"));
  ASSERT_TRUE(file) << file.error().message;
  expect_golden_logits(**file, golden_folder("llama_packed") / "expected.f32");
}

TEST(packed_files, become_the_smallest_type_that_means_the_same) {
  const auto file = model::open_model(golden_folder("llama_packed"));
  ASSERT_TRUE(file) << file.error().message;
  const auto type_of = [&](const char* name) { return (*file)->find(name)->dtype; };
  EXPECT_EQ(type_of("blk.0.ffn_up.weight"), DType::kQ4_0);
  EXPECT_EQ(type_of("blk.0.ffn_down.weight"), DType::kQ8_0);
  EXPECT_EQ(type_of("blk.1.ffn_up.weight"), DType::kQ5_0);
  EXPECT_EQ(type_of("blk.1.attn_q.weight"), DType::kF32);  // a scale that no f16 is
  EXPECT_EQ(type_of("output.weight"), DType::kBF16);
}

TEST(packed_files, other_configurations_are_refused_by_name) {
  struct Case {
    std::string pointer;
    json value;
    const char* named;
  };
  const std::string group = "/config_groups/group_0";
  const Case cases[] = {
      {"/format", "marlin-24", "format is \"marlin-24\""},
      {"/format", "mixed-precision", "format is \"mixed-precision\""},
      {group + "/format", "int-quantized", "group_0.format is \"int-quantized\", expected \"pack-quantized\""},
      {group + "/weights/num_bits", 3, "weights.num_bits is 3, expected 4 or 8"},
      {group + "/weights/type", "float", "weights.type is \"float\", expected \"int\""},
      {group + "/weights/symmetric", nullptr, "weights.symmetric is null"},
      {group + "/weights/symmetric", false, "without zero points, fits none of config_groups"},
      {group + "/weights/actorder", "rows", "weights.actorder is \"rows\""},
      {group + "/weights/strategy", "tensor", "weights.strategy is \"tensor\""},
      {group + "/weights/group_size", 0, "weights.group_size is 0"},
      {group + "/weights/group_size", 64, "fits none of config_groups"},
      {group + "/input_activations", json{{"num_bits", 8}}, "group_0.input_activations is {\"num_bits\":8}"},
      {"/kv_cache_scheme", json{{"num_bits", 8}}, "kv_cache_scheme"},
      {"/config_groups", json::object(), "config_groups is {}"},
  };
  for (const Case& row : cases) {
    const std::string message = refusal_with("llama_packed", [&row](json& config) {
      config["quantization_config"][json::json_pointer(row.pointer)] = row.value;
    });
    EXPECT_NE(message.find(row.named), std::string::npos) << row.named << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(packed_files, other_methods_are_named_with_what_to_use_instead) {
  for (const char* method : {"aqlm", "torchao", "quanto", "bitnet", "spqr", "vptq"}) {
    const std::string message = refusal_with(
        "llama_packed", [&](json& config) { config["quantization_config"] = {{"quant_method", method}}; });
    EXPECT_NE(message.find("config.json': quantization_config: quant_method is \"" + std::string(method) + "\", which "),
              std::string::npos) << message;
    EXPECT_NE(message.find("else get the model in BF16 or as a GGUF file"), std::string::npos) << message;
  }
  const std::string message = refusal_with("llama_packed", [](json& config) {
    config.erase("quantization_config");
    config["quantization"] = {{"group_size", 64}, {"bits", 4}};
  });
  EXPECT_NE(message.find("as in MLX's folders"), std::string::npos) << message;
}

// The parts of a matrix of 4 outputs of 256 inputs in groups of 128, symmetric.
class PackedParts : public ::testing::Test {
 protected:
  PackedParts() {
    put("a.weight_packed", DType::kI32, {2, {4, 32}}, 4);
    put("a.weight_scale", DType::kBF16, {2, {4, 2}}, 2);
    put("a.weight_shape", DType::kI64, {1, {2}}, 8);
    set_shape(4, 256);
    for (int i = 0; i < 8; ++i) set_scale(i, 0.5f);
    for (int i = 0; i < 512; ++i) bytes_["a.weight_packed"][static_cast<size_t>(i)] = static_cast<std::byte>(37 * i);
  }
  void put(const std::string& name, DType dtype, Shape shape, size_t unit) {
    const size_t n_bytes = static_cast<size_t>(shape.n_elements()) * unit;
    const auto at = bytes_.insert_or_assign(name, std::vector<std::byte>(n_bytes)).first;
    views_[name] = {at->first, dtype, shape, at->second.data(), n_bytes};
  }
  void set_shape(int64_t rows, int64_t columns) {
    const int64_t sizes[] = {rows, columns};
    std::memcpy(bytes_["a.weight_shape"].data(), sizes, sizeof sizes);
  }
  void set_scale(int i, float value) {
    const bf16 half = f32_to_bf16(value);
    std::memcpy(bytes_["a.weight_scale"].data() + 2 * i, &half, sizeof half);
  }
  Result<std::optional<model::JoinedWeight>> join(model::HubScheme scheme = {.bits = 4, .group = 128}) {
    const model::HubWeights weights{.form = model::HubWeightForm::kPacked, .schemes = {scheme}};
    return model::join_weight(weights, views_["a.weight_packed"], [this](const std::string& name) {
      return views_.contains(name) ? &views_[name] : nullptr;
    });
  }
  std::string refusal(model::HubScheme scheme = {.bits = 4, .group = 128}) {
    const auto joined = join(scheme);
    return joined ? "" : joined.error().message;
  }
  // As the definition has them.
  void expect_values(DType dtype) {
    const auto joined = join();
    ASSERT_TRUE(joined) << joined.error().message;
    ASSERT_EQ((*joined)->dtype, dtype);
    std::vector<std::byte> blocks(*tensor_bytes_of(dtype, (*joined)->shape));
    (*joined)->fill(blocks.data());
    std::vector<float> values(4 * 256);
    decode_elements(dtype, blocks.data(), 4 * 256, values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const int code = static_cast<int>(bytes_["a.weight_packed"][i / 2] >> (i % 2 * 4) & std::byte{15}) - 8;
      bf16 scale;
      std::memcpy(&scale, bytes_["a.weight_scale"].data() + 2 * (i / 128), sizeof scale);
      ASSERT_EQ(values[i], bf16_to_f32(scale) * static_cast<float>(code)) << i;
    }
  }

  std::map<std::string, std::vector<std::byte>> bytes_;
  std::map<std::string, TensorView> views_;
};

TEST_F(PackedParts, keep_four_bits_where_every_scale_is_an_f16) {
  set_scale(3, 0x1p-17f * 1.9921875f);  // a subnormal one
  expect_values(DType::kQ4_0);
}

TEST_F(PackedParts, become_fp8_where_a_scale_is_not) {
  set_scale(3, 0x1p-40f);
  expect_values(DType::kFP8);
  set_scale(3, 0x1p20f);
  expect_values(DType::kFP8);
}

TEST_F(PackedParts, that_are_missing_are_named) {
  for (const char* name : {"a.weight_scale", "a.weight_shape"}) {
    const TensorView view = views_[name];
    views_.erase(name);
    EXPECT_NE(refusal().find("'" + std::string(name) + "' is missing"), std::string::npos) << refusal();
    views_[name] = view;
  }
}

TEST_F(PackedParts, whose_sizes_contradict_are_refused) {
  for (const auto& [rows, columns] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {4, 257}, {4, 264}, {5, 256}, {4, 0}, {4, -256}, {4, INT64_MAX}, {INT64_MIN, 256}}) {
    set_shape(rows, columns);
    EXPECT_NE(refusal().find("holds neither 4 nor 8 bits for each"), std::string::npos) << rows << " " << columns;
  }
  set_shape(4, 256);
  EXPECT_NE(refusal({.bits = 4, .group = 96}).find("fits none"), std::string::npos);
  EXPECT_NE(refusal({.bits = 8, .group = 128}).find("fits none"), std::string::npos);
  EXPECT_NE(refusal({.bits = 4}).find("fits none"), std::string::npos);
  put("a.weight_zero_point", DType::kI32, {2, {4, 2}}, 4);
  EXPECT_NE(refusal({.bits = 4, .group = 128, .is_symmetric = false}).find("does not fit its matrix, expected [1, 2]"),
            std::string::npos);
}

TEST_F(PackedParts, whose_groups_follow_the_activations_have_the_type_of_their_scales) {
  put("a.weight_g_idx", DType::kI32, {1, {256}}, 4);
  const auto set_group = [&](size_t k, int32_t g) {
    std::memcpy(bytes_["a.weight_g_idx"].data() + 4 * k, &g, sizeof g);
  };
  for (size_t k = 0; k < 256; ++k) set_group(k, static_cast<int32_t>(k * 5 % 7 % 2));
  const auto joined = join();
  ASSERT_TRUE(joined) << joined.error().message;
  ASSERT_EQ((*joined)->dtype, DType::kBF16);
  std::vector<bf16> values(4 * 256);
  (*joined)->fill(reinterpret_cast<std::byte*>(values.data()));
  for (size_t i = 0; i < values.size(); ++i) {
    const int code = static_cast<int>(bytes_["a.weight_packed"][i / 2] >> (i % 2 * 4) & std::byte{15}) - 8;
    bf16 scale;
    std::memcpy(&scale, bytes_["a.weight_scale"].data() + 2 * (i / 256 * 2 + i % 256 * 5 % 7 % 2), sizeof scale);
    ASSERT_EQ(values[i], f32_to_bf16(bf16_to_f32(scale) * static_cast<float>(code))) << i;
  }
  set_group(9, 2);
  EXPECT_NE(refusal().find("input 9 is of group 2, but there are 2"), std::string::npos) << refusal();
}

// A tensor's bytes, of a golden whose quantization_config is changed.
std::vector<std::byte> bytes_with(const std::string& golden, const char* tensor, const json& changes) {
  const TempFolder folder;
  for (const auto& file : std::filesystem::directory_iterator(golden_folder(golden))) {
    std::filesystem::copy(file.path(), folder.path() / file.path().filename());
  }
  json config = formats::read_json_file(folder.path() / "config.json", 1 << 20).value();
  config["quantization_config"].merge_patch(changes);
  std::ofstream(folder.path() / "config.json") << config.dump();
  const auto file = model::open_model(folder.path());
  EXPECT_TRUE(file) << file.error().message;
  if (!file) return {};
  const TensorView* view = (*file)->find(tensor);
  EXPECT_TRUE((*file)->make_copy(view->bytes()));
  return {view->data, view->data + view->n_bytes};
}

TEST(auto_round_files, are_gptqs_and_awqs_under_another_name) {
  const json other = {{"quant_method", "auto-round"}, {"data_type", "int"},
                      {"extra_config", {{"lm_head", {{"bits", 16}, {"data_type", "float"}}}}}};
  for (const auto& [golden, packing] : {std::pair("llama_gptq", "auto_round:auto_gptq"),
                                        std::pair("llama_awq", "auto_round:auto_awq")}) {
    json changes = other;
    changes["packing_format"] = packing;
    const std::vector<std::byte> bytes = bytes_with(golden, "blk.1.ffn_up.weight", changes);
    EXPECT_FALSE(bytes.empty());
    EXPECT_EQ(bytes, bytes_with(golden, "blk.1.ffn_up.weight", json::object()));
  }
}

TEST(auto_round_files, of_other_kinds_are_refused_by_name) {
  const std::pair<json, const char*> cases[] = {
      {{{"packing_format", "auto_round:llm_compressor"}}, "packing_format is \"auto_round:llm_compressor\", expected"},
      {{{"data_type", "mx_fp"}}, "data_type is \"mx_fp\""},
      {{{"act_bits", 8}}, "act_bits is 8"},
      {{{"bits", 5}}, "bits is 5, expected 2, 3, 4 or 8"},
      {{{"extra_config", {{"model.layers.0.mlp.up_proj", {{"bits", 8}}}}}},
       "extra_config.model.layers.0.mlp.up_proj.bits is 8"},
      {{{"extra_config", 3}}, "extra_config is 3"},
  };
  for (const auto& [changes, named] : cases) {
    const std::string message = refusal_with("llama_gptq", [&changes = changes](json& config) {
      config["quantization_config"].merge_patch(
          {{"quant_method", "intel/auto-round"}, {"packing_format", "auto_round:auto_gptq"}});
      config["quantization_config"].merge_patch(changes);
    });
    EXPECT_NE(message.find(named), std::string::npos) << named << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace candor::testing::packed_folders
