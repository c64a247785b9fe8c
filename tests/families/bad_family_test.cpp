// Files of the newer families that contradict themselves or ask for what is not computed: refused in one line that
// names the tensor or the key, before a weight is read.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "backend/all/make_backend.h"
#include "families/changed_golden.h"
#include "formats/json_text.h"
#include "model/arch_text.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "model/prediction.h"
#include "support/memory_model_file.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

class BadGptOss : public ::testing::Test {
 protected:
  BadGptOss() : original_(formats::open_model_file(golden_folder("gpt_oss") / "model.gguf").value()) {
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
  BadHybrid() : original_(formats::open_model_file(golden_folder("qwen3_5_text") / "model.gguf").value()) {
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

TEST_F(BadHybrid, blocks_for_multi_token_prediction_are_listed) {
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

// Latent attention and routing out of groups: sizes that contradict the tensors or each other.
class BadLatent : public ::testing::Test {
 protected:
  BadLatent() : original_(formats::open_model_file(golden_folder("deepseek_v3") / "model.gguf").value()) {
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

TEST_F(BadLatent, the_sound_file_loads) {
  EXPECT_EQ(refusal_of(file_), "");
}

TEST_F(BadLatent, what_is_missing_is_named) {
  for (const auto& [name, shape] : {std::pair{"blk.1.attn_kv_a_norm.weight", "[32]"},
                                    {"blk.1.attn_q_a_norm.weight", "[48]"},
                                    {"blk.1.attn_k_b.weight", "[4, 32, 16]"},
                                    {"blk.2.exp_probs_b.bias", "[8]"},
                                    {"blk.2.ffn_up_shexp.weight", "[32, 64]"}}) {
    const TensorView tensor = *original_->find(name);
    file_.remove_tensor(name);
    expect_refused(std::string("tensor \"") + name + "\" is missing; expected shape " + shape);
    copy_tensor(tensor, name, file_);
  }
  EXPECT_EQ(refusal_of(file_), "");
}

TEST_F(BadLatent, sizes_that_contradict_are_named) {
  struct Case {
    const char* key;
    uint64_t value;
    const char* refusal;
  };
  const Case cases[] = {
      {"attention.kv_lora_rank", 40, "\"deepseek2.attention.kv_lora_rank\" is 40; expected a multiple of 16"},
      {"attention.kv_lora_rank", 48, "\"blk.0.attn_kv_a_mqa.weight\": shape [40, 64]; expected [56, 64]"},
      {"attention.kv_lora_rank", 0, "'deepseek2.attention.kv_lora_rank': the value is 0, expected 1 to"},
      {"attention.q_lora_rank", 64, "\"blk.0.attn_q_a.weight\": shape [48, 64]; expected [64, 64]"},
      {"attention.q_lora_rank", 0, "tensor \"blk.0.attn_q.weight\" is missing; expected shape [96, 64]"},
      {"attention.value_length_mla", 20, "\"deepseek2.attention.value_length_mla\" is 20; expected a multiple of 16"},
      {"attention.value_length_mla", 32, "\"blk.0.attn_v_b.weight\": shape [4, 16, 32]; expected [4, 32, 32]"},
      {"attention.key_length_mla", 8,
       "\"deepseek2.rope.dimension_count\" is 8; expected less than the width of a head"},
      {"attention.head_count", 8, "\"blk.0.attn_q_b.weight\": shape [96, 48]; expected [192, 48]"},
      {"attention.head_count", 60000, "'deepseek2.attention.kv_lora_rank': the value is 32, expected 1 to 17"},
      {"rope.dimension_count", 7, "\"deepseek2.rope.dimension_count\" is 7; expected an even number"},
      {"expert_group_count", 3, "\"deepseek2.expert_group_count\" is 3; expected a divisor of"},
      {"expert_group_count", 9, "'deepseek2.expert_group_count': the value is 9, expected 0 to 8"},
      {"expert_group_used_count", 5, "\"deepseek2.expert_group_used_count\" is 5; expected 1 to"},
      {"expert_group_used_count", 1,
       "\"deepseek2.expert_used_count\" is 3; expected at most 2, the experts of 1 groups"},
      {"expert_gating_func", 4, "\"deepseek2.expert_gating_func\" is 4; supported: 1 (softmax), 2 (sigmoid)"},
      {"expert_shared_count", 2, "\"blk.1.ffn_gate_shexp.weight\": shape [32, 64]; expected [64, 64]"},
      {"leading_dense_block_count", 4, "'deepseek2.leading_dense_block_count': the value is 4, expected 0 to 3"},
      {"leading_dense_block_count", 0, "\"blk.0.ffn_gate_inp.weight\" is missing"},
  };
  for (const Case& row : cases) {
    const std::string key = std::string("deepseek2.") + row.key;
    const formats::MetaValue sound = *original_->meta(key);
    file_.set(key, row.value);
    expect_refused(row.refusal);
    file_.set(key, sound);
  }
  file_.set("deepseek2.rope.scaling.attn_factor", 2.0);
  expect_refused("\"deepseek2.rope.scaling.attn_factor\" is 2; supported: 1");
}

TEST_F(BadLatent, blocks_for_multi_token_prediction_are_listed) {
  file_.set("deepseek2.block_count", uint64_t{4});
  file_.set("deepseek2.nextn_predict_layers", uint64_t{1});
  EXPECT_EQ(refusal_of(file_), "");
  EXPECT_EQ(model::to_text(*model::read_arch(file_)).find("multi-token"), std::string::npos);
  file_.add_tensor("blk.3.nextn.eh_proj.weight", DType::kF32, {2, {64, 128}},
                   std::vector<std::byte>(64 * 128 * sizeof(float)));
  EXPECT_EQ(refusal_of(file_), "");
  EXPECT_NE(model::to_text(*model::read_arch(file_)).find("multi-token prediction: 1 blocks from block 3 on"),
            std::string::npos);
}

// "blk.N.ffn_up.E.weight": an expert of its own in each tensor.
TEST(bad_family, an_expert_of_another_type_than_its_siblings_is_named) {
  const auto original = model::open_model(golden_folder("olmoe"));
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

// The exponents of one tensor have another name.
TEST(bad_family, codes_of_experts_without_their_exponents_are_named) {
  const TempFolder folder;
  fs::copy(golden_folder("gpt_oss"), folder.path(), fs::copy_options::recursive);
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

// A key of config.json whose value is not computed.
struct Setting {
  const char* golden;
  const char* key;
  nlohmann::json value;
};

std::vector<Setting> settings_that_are_not_computed() {
  return {
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
      {"deepseek_v3", "attention_bias", true},
      {"deepseek_v3", "rope_interleave", "no"},
      {"deepseek_v3", "scoring_func", "tanh"},
      {"deepseek_v3", "topk_method", "greedy"},
      {"deepseek_v3", "moe_layer_freq", 2},
      {"deepseek_v3", "n_group", "four"},
      {"deepseek_v3", "quantization_config", {{"quant_method", "quip"}}},
      {"deepseek_v2", "topk_method", "noaux_tc"},
      {"glm4_moe", "n_routed_experts", -8},
      {"glm4_moe", "scoring_func", "relu"},
      {"qwen2_moe", "decoder_sparse_step", 0},
      {"qwen2_moe", "mlp_only_layers", 2},
      {"minimax_m2", "qk_norm_type", "per_head"},
      {"minimax_m2", "use_routing_bias", false},
      {"minimax_m2", "attn_type_list", {1, 0}},
      {"minimax_m2", "rotary_dim", 1e12},
      {"minimax_m2", "scoring_func", "softmax"},
      {"glm4_moe_lite", "mlp_layer_types", {"dense", "sparse", "dense"}},
      {"glm4_moe_lite", "mlp_layer_types", {"dense", "mamba", "sparse"}},
      {"glm4_moe_lite", "attention_bias", true},
      {"dots1", "scoring_func", "softplus"},
      {"dots1", "n_group", 3.5},
      {"internlm2", "bias", true},
      {"baichuan", "vocab_size", 125696},
      {"ministral", "layer_types", {"full_attention", "chunked_attention", "sliding_attention"}},
      {"minicpm", "scale_depth", nullptr},
      {"minicpm", "dim_model_base", -1},
      {"minicpm", "scale_emb", "twelve"},
      {"deepseek_v2", "q_lora_rank", -1},
      {"deepseek_v3", "num_nextn_predict_layers", 1.5},
  };
}

TEST(bad_family, what_config_json_asks_for_and_is_not_computed_is_named) {
  for (const Setting& row : settings_that_are_not_computed()) {
    const std::string refusal = refusal_with(row.golden, [&](nlohmann::json& config) { config[row.key] = row.value; });
    const char* key = std::string(row.key).find("act") == 0 ? "hidden_act" : row.key;
    EXPECT_NE(refusal.find(key), std::string::npos) << row.golden << " " << row.key << ": " << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
  EXPECT_EQ(refusal_with("gpt_oss", [](nlohmann::json&) {}), "");
}

TEST(bad_family, sizes_of_a_latent_in_config_json_that_its_tensors_contradict_are_named) {
  const auto refusal = [](const char* key, const nlohmann::json& value) {
    return refusal_with("deepseek_v3", [&](nlohmann::json& config) { config[key] = value; });
  };
  EXPECT_NE(refusal("v_head_dim", 32).find("kv_b_proj.weight': shape [128, 32]; expected [192, 32]"), std::string::npos)
      << refusal("v_head_dim", 32);
  EXPECT_NE(refusal("qk_nope_head_dim", nullptr).find("kv_b_proj.weight': shape [128, 32]"), std::string::npos);
  EXPECT_NE(refusal("kv_lora_rank", nullptr).find("kv_b_proj.weight'"), std::string::npos);
  const auto scaled = [&](const nlohmann::json& mscale) {
    return refusal_with("deepseek_v3", [&](nlohmann::json& config) { config["rope_parameters"]["mscale"] = mscale; });
  };
  EXPECT_EQ(scaled(0.5), "");
  EXPECT_NE(scaled("half").find("\"mscale\" is '\"half\"', expected a number"), std::string::npos) << scaled("half");
}

TEST(bad_family, a_dynamic_scaling_by_alpha_is_named) {
  const std::string refusal =
      refusal_with("internlm3", [](nlohmann::json& config) { config["rope_parameters"]["alpha"] = 1000.0; });
  EXPECT_NE(refusal.find("\"rope_type\" is '\"dynamic\"', which is not supported"), std::string::npos) << refusal;
}

TEST(bad_family, joined_and_parted_projections_do_not_stand_together) {
  EXPECT_EQ(refusal_of_gguf("internlm2", [](MemoryModelFile&) {}), "");
  const std::string both = refusal_of_gguf("internlm2", [](MemoryModelFile& file) {
    file.add_tensor("blk.1.attn_qkv.weight", DType::kBF16, {2, {128, 64}}, std::vector<std::byte>(128 * 64 * 2));
  });
  EXPECT_NE(both.find("tensor 'blk.1.attn_q.weight' [64, 64] has no place"), std::string::npos) << both;
  const std::string neither = refusal_of_gguf("baichuan", [](MemoryModelFile& file) {
    file.remove_tensor("blk.1.attn_k.weight");
  });
  EXPECT_NE(neither.find("\"blk.1.attn_k.weight\" is missing; expected shape [64, 64]"), std::string::npos) << neither;
}

TEST(bad_family, keys_that_a_file_needs_or_that_are_not_computed_are_named) {
  const auto changed = [](const char* name, const char* key, const formats::MetaValue& value) {
    return refusal_of_gguf(name, [&](MemoryModelFile& file) { file.set(key, value); });
  };
  const std::string scale = changed("ministral3", "mistral3.rope.scaling.yarn_log_multiplier", 0.5);
  EXPECT_NE(scale.find("yarn_log_multiplier\" is 0.5; supported: 1"), std::string::npos) << scale;
  const std::string shared = changed("minimax_m2", "minimax-m2.expert_shared_count", uint64_t{1});
  EXPECT_NE(shared.find("expert_shared_count"), std::string::npos) << shared;
  const std::string silent =
      refusal_of_gguf("minicpm", [](MemoryModelFile& file) { file.erase("minicpm.residual_scale"); });
  EXPECT_NE(silent.find("\"minicpm.residual_scale\" is absent"), std::string::npos) << silent;
  const std::string unbiased =
      refusal_of_gguf("dots1", [](MemoryModelFile& file) { file.remove_tensor("blk.1.exp_probs_b.bias"); });
  EXPECT_NE(unbiased.find("\"blk.1.exp_probs_b.bias\" is missing"), std::string::npos) << unbiased;
}

// 13B is known by its depth.
TEST(families, baichuan_of_forty_blocks_has_alibi) {
  const auto original = formats::open_model_file(golden_folder("baichuan") / "model.gguf").value();
  MemoryModelFile file;
  for (const formats::MetaEntry& entry : original->metadata()) file.set(std::string(entry.key), entry.value);
  for (const TensorView& tensor : original->tensors()) copy_tensor(tensor, std::string(tensor.name), file);
  EXPECT_EQ(model::read_arch(file)->blocks[0].attn.max_alibi_bias, 0.0f);
  file.set("baichuan.block_count", uint64_t{40});
  const auto spec = model::read_arch(file);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->blocks[39].attn.max_alibi_bias, 8.0f);
  EXPECT_EQ(spec->blocks[39].attn.rope.n_dims, 0);
}

// MiMo's is named apart, and reads the vector first.
TEST(families, tensors_for_prediction_stand_behind_the_models_blocks) {
  const auto file = model::open_model(golden_folder("mimo"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE((*file)->info().left_out.empty());
  const auto spec = model::read_arch(**file);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->blocks.size(), 2u);
  EXPECT_EQ(spec->n_prediction_blocks, 1);
  const auto head = model::prediction_arch(**file, *spec);
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->first_block, 2);
  EXPECT_EQ(head->blocks.front(), spec->blocks.back());
  EXPECT_NE((*file)->find("blk.2.nextn.eh_proj.weight"), nullptr);
  EXPECT_EQ(model::read_arch(*model::open_model(golden_folder("qwen2")).value())->n_prediction_blocks, 0);
}

TEST(bad_family, kinds_of_too_few_blocks_are_named) {
  const std::string refusal = refusal_with("ministral", [](nlohmann::json& config) {
    config["layer_types"] = {"full_attention", "sliding_attention"};
  });
  EXPECT_NE(refusal.find("sliding_window_pattern\": expected 3 flags"), std::string::npos) << refusal;
}

TEST(bad_family, growth_of_queries_that_contradicts_itself_is_named) {
  const auto refusal = [](const char* key, const nlohmann::json& value) {
    return refusal_with("ministral3", [&](nlohmann::json& config) { config["rope_parameters"][key] = value; });
  };
  EXPECT_EQ(refusal("mscale", 0.5), "");
  EXPECT_NE(refusal("llama_4_scaling_beta", -1).find("temperature_scale\" is -1"), std::string::npos)
      << refusal("llama_4_scaling_beta", -1);
  EXPECT_NE(refusal("llama_4_scaling_beta", "much").find("llama_4_scaling_beta"), std::string::npos);
  EXPECT_NE(refusal("rope_type", "linear").find("original_context_length\" is absent"), std::string::npos)
      << refusal("rope_type", "linear");
}

}  // namespace
}  // namespace candor::testing
