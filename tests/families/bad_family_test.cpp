// Files of the newer families that contradict themselves or ask for what is not computed: refused in one line that
// names the tensor or the key, before a weight is read.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "backend/all/make_backend.h"
#include "formats/json_text.h"
#include "model/arch_text.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "support/memory_model_file.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) {
  return project_file("tests/families/goldens/" + name);
}

void copy_tensor(const TensorView& tensor, const std::string& name, MemoryModelFile& copy) {
  copy.add_tensor(name, tensor.dtype, tensor.shape, {tensor.data, tensor.data + tensor.n_bytes});
}

// What stands in the way of the model; "" where it loads.
std::string refusal_of(const formats::ModelFile& file) {
  const auto backend = backend::make_backend("reference", {.n_threads = 1});
  const auto loaded = model::Model::load(file, **backend, {});
  return loaded ? std::string() : loaded.error().message;
}

class BadGptOss : public ::testing::Test {
 protected:
  BadGptOss() : original_(formats::open_model_file(golden("gpt_oss") / "model.gguf").value()) {
    for (const formats::MetaEntry& entry : original_->metadata()) file_.set(std::string(entry.key), entry.value);
    for (const TensorView& tensor : original_->tensors()) copy_tensor(tensor, std::string(tensor.name), file_);
  }

  std::unique_ptr<formats::ModelFile> original_;
  MemoryModelFile file_;
};

TEST_F(BadGptOss, the_sound_file_loads) {
  EXPECT_EQ(refusal_of(file_), "");
}

TEST_F(BadGptOss, a_missing_sink_is_named) {
  file_.remove_tensor("blk.1.attn_sinks.weight");
  const std::string refusal = refusal_of(file_);
  EXPECT_NE(refusal.find("tensor \"blk.1.attn_sinks.weight\" is missing; expected shape [4]"), std::string::npos)
      << refusal;
}

TEST_F(BadGptOss, biases_of_too_few_experts_are_named) {
  const TensorView biases = *file_.find("blk.0.ffn_up_exps.bias");
  file_.remove_tensor(biases.name);
  const size_t n_bytes = biases.n_bytes / 2;
  file_.add_tensor("blk.0.ffn_up_exps.bias", biases.dtype, {2, {4, 64}}, {biases.data, biases.data + n_bytes});
  const std::string refusal = refusal_of(file_);
  EXPECT_NE(refusal.find("\"blk.0.ffn_up_exps.bias\": shape [4, 64]; expected [8, 64]"), std::string::npos) << refusal;
}

TEST_F(BadGptOss, a_routing_that_is_not_known_is_named) {
  file_.set("gpt-oss.expert_gating_func", int64_t{2});
  const std::string refusal = refusal_of(file_);
  EXPECT_NE(refusal.find("\"gpt-oss.expert_gating_func\" is set"), std::string::npos) << refusal;
}

// Recurrent layers: sizes that contradict the tensors or each other, and blocks for multi-token prediction.
class BadHybrid : public ::testing::Test {
 protected:
  BadHybrid() : original_(formats::open_model_file(golden("qwen3_5_text") / "model.gguf").value()) {
    for (const formats::MetaEntry& entry : original_->metadata()) file_.set(std::string(entry.key), entry.value);
    for (const TensorView& tensor : original_->tensors()) copy_tensor(tensor, std::string(tensor.name), file_);
  }
  void expect_refused(const std::string& reason) {
    const std::string refusal = refusal_of(file_);
    EXPECT_NE(refusal.find(reason), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }

  std::unique_ptr<formats::ModelFile> original_;
  MemoryModelFile file_;
};

TEST_F(BadHybrid, the_sound_file_loads) {
  EXPECT_EQ(refusal_of(file_), "");
}

TEST_F(BadHybrid, a_state_of_another_width_than_the_tensors_is_named) {
  file_.set("qwen35.ssm.state_size", uint64_t{32});
  expect_refused("\"blk.0.attn_qkv.weight\": shape [128, 64]; expected [192, 64]");
}

TEST_F(BadHybrid, a_convolution_of_another_length_than_its_taps_is_named) {
  file_.set("qwen35.ssm.conv_kernel", uint64_t{3});
  expect_refused("\"blk.0.ssm_conv1d.weight\": shape [128, 4]; expected [128, 3]");
}

TEST_F(BadHybrid, value_heads_that_key_heads_do_not_divide_are_named) {
  file_.set("qwen35.ssm.group_count", uint64_t{3});
  expect_refused("\"qwen35.ssm.time_step_rank\" is 4, expected a multiple of \"qwen35.ssm.group_count\", which is 3");
}

TEST_F(BadHybrid, a_width_that_value_heads_do_not_divide_is_named) {
  file_.set("qwen35.ssm.inner_size", uint64_t{66});
  expect_refused("\"qwen35.ssm.inner_size\" is 66, expected a multiple of \"qwen35.ssm.time_step_rank\", which is 4");
}

TEST_F(BadHybrid, missing_rates_are_named) {
  file_.remove_tensor("blk.1.ssm_a");
  expect_refused("tensor \"blk.1.ssm_a\" is missing; expected shape [4]");
}

TEST_F(BadHybrid, a_model_without_attention_is_refused) {
  file_.set("qwen35.full_attention_interval", uint64_t{5});
  expect_refused("every block is recurrent");
}

TEST_F(BadHybrid, blocks_for_multi_token_prediction_are_listed_and_not_computed) {
  file_.set("qwen35.block_count", uint64_t{5});
  file_.set("qwen35.nextn_predict_layers", uint64_t{1});
  file_.add_tensor("blk.4.nextn.eh_proj.weight", DType::kF32, {2, {64, 128}},
                   std::vector<std::byte>(64 * 128 * sizeof(float)));
  EXPECT_EQ(refusal_of(file_), "");
  const auto spec = model::read_arch(file_);
  ASSERT_TRUE(spec);
  EXPECT_NE(model::to_text(*spec).find("multi-token prediction: 1 blocks from block 4 on"), std::string::npos);
  file_.set("qwen35.nextn_predict_layers", uint64_t{0});
  expect_refused("blk.4.");
}

// "blk.N.ffn_up.E.weight": an expert of its own in each tensor.
TEST(bad_family, an_expert_of_another_type_than_its_siblings_is_named) {
  const auto original = model::open_model(golden("olmoe"));
  ASSERT_TRUE(original) << original.error().message;
  MemoryModelFile file;
  for (const formats::MetaEntry& entry : (*original)->metadata()) file.set(std::string(entry.key), entry.value);
  for (const TensorView& tensor : (*original)->tensors()) {
    if (tensor.name != "blk.1.ffn_up.3.weight") {
      copy_tensor(tensor, std::string(tensor.name), file);
      continue;
    }
    const auto n_bytes = static_cast<size_t>(tensor.shape.n_elements()) * sizeof(float);
    file.add_tensor(std::string(tensor.name), DType::kF32, tensor.shape, std::vector<std::byte>(n_bytes));
  }
  const std::string refusal = refusal_of(file);
  EXPECT_NE(refusal.find("\"blk.1.ffn_up.3.weight\": type F32; expected BF16"), std::string::npos) << refusal;
}

// A copy of a golden's folder whose config.json is changed.
std::string refusal_with(const std::string& name, const std::function<void(nlohmann::json&)>& change) {
  const TempFolder folder;
  for (const fs::directory_entry& file : fs::directory_iterator(golden(name))) {
    if (file.path().extension() != ".gguf") fs::copy(file.path(), folder.path() / file.path().filename());
  }
  nlohmann::json config = formats::read_json_file(folder.path() / "config.json", 1 << 20).value();
  change(config);
  std::ofstream(folder.path() / "config.json") << config.dump();
  const auto file = model::open_model(folder.path());
  return file ? refusal_of(**file) : file.error().message;
}

// The exponents of one tensor have another name.
TEST(bad_family, codes_of_experts_without_their_exponents_are_named) {
  const TempFolder folder;
  fs::copy(golden("gpt_oss"), folder.path(), fs::copy_options::recursive);
  const fs::path weights = folder.path() / "model.safetensors";
  std::ifstream stream(weights, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const size_t at = bytes.find("down_proj_scales");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 16, "down_proj_scalez");
  std::ofstream(weights, std::ios::binary) << bytes;
  const auto file = model::open_model(folder.path());
  ASSERT_FALSE(file);
  const std::string& refusal = file.error().message;
  EXPECT_NE(refusal.find("down_proj_blocks"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("down_proj_scales' is missing"), std::string::npos) << refusal;
}

TEST(bad_family, what_config_json_asks_for_and_is_not_computed_is_named) {
  struct Case {
    const char* golden;
    const char* key;
    nlohmann::json value;
  };
  const Case cases[] = {
      {"gpt_oss", "swiglu_limit", 5.0},
      {"gpt_oss", "swiglu_alpha", 1.0},
      {"gpt_oss", "hidden_act", "gelu"},
      {"falcon", "alibi", true},
      {"falcon", "parallel_attn", false},
      {"falcon", "activation", "relu"},
      {"olmo", "clip_qkv", 8.0},
      {"mpt", "expansion_ratio", 2},
      {"opt", "do_layer_norm_before", false},
      {"opt", "activation_function", "gelu"},
      {"gpt_bigcode", "multi_query", false},
      {"phi", "hidden_act", "silu"},
      {"gpt_neox", "use_parallel_residual", "yes"},
      {"qwen3_5_text", "layer_types", {"linear_attention", "mamba", "full_attention", "full_attention"}},
      {"qwen3_5_text", "linear_key_head_dim", 0},
      {"qwen3_5_text", "linear_num_value_heads", nullptr},
  };
  for (const Case& row : cases) {
    const std::string refusal = refusal_with(row.golden, [&](nlohmann::json& config) { config[row.key] = row.value; });
    const char* key = std::string(row.key).find("act") == 0 ? "hidden_act" : row.key;
    EXPECT_NE(refusal.find(key), std::string::npos) << row.golden << " " << row.key << ": " << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
  EXPECT_EQ(refusal_with("gpt_oss", [](nlohmann::json&) {}), "");
}

}  // namespace
}  // namespace candor::testing
