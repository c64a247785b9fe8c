// Files of Gemma 4, Llama 4 and other sparse models that contradict themselves or ask for what is not computed, and
// folders of more than text: one line each that names the tensor or the key, before a weight is read.

#include <gtest/gtest.h>

#include <algorithm>

#include "families/changed_golden.h"
#include "model/arch_text.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

void expect_line(const std::string& refusal, const std::string& reason) {
  EXPECT_NE(refusal.find(reason), std::string::npos) << refusal;
  EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
}

std::string without(const std::string& name, const std::string& tensor) {
  return refusal_of_gguf(name, [&](MemoryModelFile& file) { file.remove_tensor(tensor); });
}

std::string with_key(const std::string& name, const std::string& key, const formats::MetaValue& value) {
  return refusal_of_gguf(name, [&](MemoryModelFile& file) { file.set(key, value); });
}

TEST(bad_sparse, the_sound_files_load) {
  for (const char* name :
       {"gemma4_text", "gemma4_moe", "llama4_text", "mistral4", "ernie4_5_moe", "granitemoeshared"}) {
    EXPECT_EQ(refusal_of_gguf(name, [](MemoryModelFile&) {}), "") << name;
  }
}

// ggml, and so llama-quantize, writes no outer dimension of one.
TEST(bad_sparse, a_router_of_one_row_may_be_a_vector) {
  for (const char* name : {"qwen2_moe", "qwen3_5_moe_text"}) {
    const std::string router = "blk.0.ffn_gate_inp_shexp.weight";
    const auto original = gguf_golden(name);
    const TensorView& row = *original->find(router);
    ASSERT_EQ(row.shape.n_dims, 2) << name;
    const auto as_vector = [&](int64_t n) {
      return refusal_of_gguf(name, [&](MemoryModelFile& file) {
        file.remove_tensor(router);
        file.add_tensor(router, row.dtype, {1, {n}}, {row.data, row.data + row.n_bytes / row.shape[1] * n});
      });
    };
    EXPECT_EQ(as_vector(row.shape[1]), "") << name;
    expect_line(as_vector(row.shape[1] / 2), "\"blk.0.ffn_gate_inp_shexp.weight\": shape [1, ");
  }
}

TEST(bad_sparse, missing_tensors_are_named) {
  struct Case {
    const char* golden;
    const char* tensor;
  };
  const Case cases[] = {
      {"gemma4_text", "per_layer_model_proj.weight"},    {"gemma4_text", "per_layer_token_embd.weight"},
      {"gemma4_text", "blk.3.inp_gate.weight"},          {"gemma4_text", "blk.0.attn_v.weight"},
      {"gemma4_moe", "blk.1.ffn_down_exps.scale"},       {"gemma4_moe", "blk.1.ffn_gate_inp.scale"},
      {"gemma4_moe", "blk.2.pre_ffw_norm_2.weight"},     {"llama4_text", "blk.1.ffn_up_shexp.weight"},
      {"llama4_text", "blk.3.ffn_gate_inp.weight"},      {"ernie4_5_moe", "blk.1.exp_probs_b.bias"},
      {"granitemoeshared", "blk.0.ffn_up_shexp.weight"}, {"hunyuan_v1_moe", "blk.1.attn_q_norm.weight"},
      {"mistral4", "blk.1.attn_kv_a_norm.weight"},
  };
  for (const Case& row : cases) {
    expect_line(without(row.golden, row.tensor), "\"" + std::string(row.tensor) + "\" is missing; expected shape");
  }
}

TEST(bad_sparse, sizes_that_the_tensors_contradict_are_named) {
  expect_line(with_key("gemma4_text", "gemma4.embedding_length_per_layer_input", uint64_t{8}),
              "\"per_layer_token_embd.weight\": shape [288, 96]; expected [288, 48]");
  expect_line(with_key("gemma4_text", "gemma4.attention.key_length_swa", uint64_t{32}),
              "\"gemma4.attention.value_length_swa\"");
  expect_line(with_key("gemma4_moe", "gemma4.expert_feed_forward_length", uint64_t{16}),
              "\"blk.0.ffn_gate_up_exps.weight\": shape [6, 64, 64]; expected [6, 32, 64]");
  expect_line(with_key("gemma4_moe", "gemma4.attention.head_count_kv", uint64_t{3}),
              "\"gemma4.attention.head_count_kv\" is 3");
  expect_line(with_key("llama4_text", "llama4.interleave_moe_layer_step", uint64_t{1}), "blk.0.ffn_gate_inp.weight");
}

TEST(bad_sparse, keys_and_values_that_no_block_before_has_are_named) {
  expect_line(with_key("gemma4_text", "gemma4.attention.shared_kv_layers", uint64_t{4}),
              "no block before block 2 has keys and values like those of block 2");
  expect_line(with_key("gemma4_text", "gemma4.attention.shared_kv_layers", uint64_t{6}),
              "'gemma4.attention.shared_kv_layers': the value is 6");
}

TEST(bad_sparse, numbers_outside_their_limits_are_named) {
  expect_line(with_key("llama4_text", "llama4.interleave_moe_layer_step", uint64_t{0}),
              "'llama4.interleave_moe_layer_step': the value is 0");
  expect_line(with_key("llama4_text", "llama4.attention.temperature_scale", -1.0), "temperature_scale\" is -1");
  expect_line(with_key("llama4_text", "llama4.attention.sliding_window", uint64_t{0}),
              "'llama4.attention.sliding_window': the value is 0");
  expect_line(with_key("mistral4", "mistral4.attention.temperature_scale", -1.0), "temperature_scale\" is -1");
  expect_line(with_key("mistral4", "mistral4.attention.kv_lora_rank", uint64_t{30}),
              "kv_lora_rank\" is 30; expected a multiple of 16");
}

TEST(bad_sparse, what_config_json_asks_for_and_is_not_computed_is_named) {
  struct Case {
    const char* golden;
    const char* key;
    nlohmann::json value;
  };
  const Case cases[] = {
      {"gemma4_text", "use_bidirectional_attention", "all"},
      {"gemma4_text", "attention_bias", true},
      {"gemma4_text", "num_kv_shared_layers", -1},
      {"gemma4_text", "layer_types", {"sliding_attention", "chunked_attention"}},
      {"gemma4_moe", "top_k_experts", "two"},
      {"llama4_text", "attention_bias", true},
      {"llama4_text", "moe_layers", {0, 2}},
      {"llama4_text", "no_rope_layers", {1, 2, 1, 0}},
      {"llama4_text", "layer_types", {"full_attention", "chunked_attention", "chunked_attention", "full_attention"}},
      {"llama4_text", "floor_scale", 0.5},
      {"mistral4", "rope_interleave", 2},
      {"mistral4", "n_group", "one"},
      {"ernie4_5_moe", "use_bias", true},
      {"ernie4_5_moe", "moe_layer_end_index", 1},
      {"ernie4_5_moe", "moe_num_experts", 2.5},
      {"hunyuan_v1_moe", "use_cla", true},
      {"hunyuan_v1_moe", "moe_topk", {1, 2}},
      {"hunyuan_v1_dense", "use_qk_norm", false},
      {"granitemoe", "hidden_act", "gelu"},
      {"granitemoeshared", "shared_intermediate_size", -4},
  };
  for (const Case& row : cases) {
    const std::string refusal = refusal_with(row.golden, [&](nlohmann::json& config) { config[row.key] = row.value; });
    expect_line(refusal, row.key);
  }
}

TEST(outer_folder, without_text_or_with_text_that_is_not_known_is_named) {
  expect_line(refusal_with("qwen3_5", [](nlohmann::json& config) { config.erase("text_config"); }), "'qwen3_5'");
  expect_line(refusal_with("qwen3_5", [](nlohmann::json& config) { config["text_config"]["model_type"] = "t5"; }),
              "model_type 'qwen3_5' with text of 't5' is not known");
  expect_line(refusal_with("qwen3_5", [](nlohmann::json& config) { config["text_config"] = 3; }),
              "model_type 'qwen3_5'");
}

TEST(outer_folder, says_which_tensors_it_leaves_out) {
  const auto file = model::open_model(golden_folder("qwen3_5"));
  ASSERT_TRUE(file) << file.error().message;
  const std::vector<std::string>& names = (*file)->info().left_out;
  EXPECT_FALSE(names.empty());
  EXPECT_TRUE(std::ranges::all_of(names, [](const std::string& name) { return name.starts_with("model.visual."); }));
  EXPECT_NE((*file)->find("blk.0.ffn_norm.weight") == nullptr,
            (*file)->find("blk.0.post_attention_norm.weight") == nullptr);
}

TEST(gemma4, says_whose_keys_and_values_a_block_reads_and_counts_only_what_is_stored) {
  const auto file = model::open_model(golden_folder("gemma4_text"));
  ASSERT_TRUE(file) << file.error().message;
  const auto spec = model::read_arch(**file);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_NE(model::to_text(*spec).find("keys and values: those of block 1"), std::string::npos);
  const backend::KvLayout layout = model::kv_layout(*spec, KvType::kF32);
  ASSERT_EQ(layout.n_layers, 3);
  EXPECT_EQ(layout.heads_of(0).head_dim, 16);
  EXPECT_EQ(layout.heads_of(2).head_dim, 32);
  // K and V of 16, 16 and 32 wide heads, 32 tokens of 4 bytes.
  EXPECT_EQ(backend::kv_block_bytes(layout), 2 * 32 * 4 * (16 + 16 + 32));
}

}  // namespace
}  // namespace candor::testing
