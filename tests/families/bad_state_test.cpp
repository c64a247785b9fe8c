// Files of families with gated convolutions and state spaces that contradict themselves or ask for what is not
// computed: refused in one line that names the tensor and the key, before a weight is read.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "backend/all/make_backend.h"
#include "formats/json_text.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "support/memory_model_file.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

fs::path state_golden(const std::string& name) {
  return goldens() / name;
}

// What stands in the way of the model; "" where it loads.
std::string state_refusal(const formats::ModelFile& file) {
  const auto backend = backend::make_backend("reference", {.n_threads = 1});
  const auto loaded = model::Model::load(file, **backend, {});
  return loaded ? std::string() : loaded.error().message;
}

std::string refusal_of_changed(const std::string& name, const std::function<void(MemoryModelFile&)>& change) {
  const auto original = formats::open_model_file(state_golden(name) / "model.gguf").value();
  MemoryModelFile file;
  for (const formats::MetaEntry& entry : original->metadata()) file.set(std::string(entry.key), entry.value);
  for (const TensorView& tensor : original->tensors()) {
    file.add_tensor(std::string(tensor.name), tensor.dtype, tensor.shape, {tensor.data, tensor.data + tensor.n_bytes});
  }
  change(file);
  return state_refusal(file);
}

void expect_one_line(const std::string& refusal, const std::string& reason) {
  EXPECT_NE(refusal.find(reason), std::string::npos) << refusal;
  EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
}

struct BadKey {
  const char* golden;
  const char* key;
  formats::MetaValue value;
  const char* reason;
};

TEST(bad_state, sizes_that_contradict_the_tensors_or_each_other_are_named) {
  const std::vector<int64_t> none(4, 0);
  const BadKey rows[] = {
      {"lfm2", "lfm2.shortconv.l_cache", uint64_t{4},
       "\"blk.0.shortconv.conv.weight\": shape [64, 3]; expected [64, 4] by metadata key \"lfm2.shortconv.l_cache\""},
      {"lfm2", "lfm2.shortconv.l_cache", uint64_t{9}, "key 'lfm2.shortconv.l_cache': the value is 9, expected 2 to 8"},
      {"lfm2", "lfm2.attention.head_count_kv", formats::MetaArray(none), "is 0 in every block"},
      {"lfm2", "lfm2.attention.head_count_kv", formats::MetaArray(std::vector<int64_t>{0, 0, 2}),
       "3 entries; expected 4"},
      {"lfm2", "lfm2.attention.head_count_kv", formats::MetaArray(std::vector<int64_t>{0, 0, 2, 2}),
       "\"blk.3.attn_q.weight\" is missing"},
      {"lfm2_moe", "lfm2moe.expert_gating_func", uint64_t{3}, "\"lfm2moe.expert_gating_func\" is 3"},
      {"granitemoehybrid", "granitehybrid.ssm.state_size", uint64_t{16},
       "\"blk.0.ssm_conv1d.weight\": shape [192, 4]; expected [160, 4] by metadata key "
       "\"granitehybrid.ssm.state_size\""},
      {"granitemoehybrid", "granitehybrid.ssm.conv_kernel", uint64_t{3},
       "expected [192, 3] by metadata key \"granitehybrid.ssm.conv_kernel\""},
      {"granitemoehybrid", "granitehybrid.ssm.group_count", uint64_t{3},
       "\"granitehybrid.ssm.time_step_rank\" is 8; expected a multiple of \"granitehybrid.ssm.group_count\", which is "
       "3"},
      {"granitemoehybrid", "granitehybrid.ssm.inner_size", uint64_t{126},
       "\"granitehybrid.ssm.inner_size\" is 126; expected a multiple of \"granitehybrid.ssm.time_step_rank\""},
      {"falcon_h1", "falcon-h1.ssm.time_step_rank", uint64_t{4}, "by metadata key \"falcon-h1.ssm.time_step_rank\""},
      {"nemotron_h", "nemotron_h.ssm.inner_size", uint64_t{64}, "by metadata key \"nemotron_h.ssm.inner_size\""},
      {"nemotron_h_moe", "nemotron_h_moe.moe_latent_size", uint64_t{32}, "\"nemotron_h_moe.moe_latent_size\" is set"},
  };
  for (const BadKey& row : rows) {
    expect_one_line(refusal_of_changed(row.golden, [&](MemoryModelFile& file) { file.set(row.key, row.value); }),
                    row.reason);
  }
}

TEST(bad_state, missing_parts_are_named) {
  const auto without = [](const char* golden, const char* tensor) {
    return refusal_of_changed(golden, [&](MemoryModelFile& file) { file.remove_tensor(tensor); });
  };
  EXPECT_EQ(refusal_of_changed("nemotron_h", [](MemoryModelFile&) {}), "");
  expect_one_line(without("lfm2", "blk.0.shortconv.in_proj.weight"), "is missing; expected shape [192, 64]");
  expect_one_line(without("granitemoehybrid", "blk.1.ssm_d"),
                  "tensor \"blk.1.ssm_d\" is missing; expected shape [8, 1]");
  expect_one_line(without("nemotron_h", "blk.0.ssm_norm.weight"), "is missing; expected shape [2, 64]");
  expect_one_line(without("nemotron_h_moe", "blk.1.exp_probs_b.bias"), "\"blk.1.exp_probs_b.bias\" is missing");
  EXPECT_EQ(without("granitemoehybrid", "blk.1.ssm_conv1d.bias"), "");  // none is as good as zeros
}

std::string refusal_of_config(const std::string& name, const std::function<void(nlohmann::json&)>& change) {
  const TempFolder folder;
  for (const fs::directory_entry& file : fs::directory_iterator(state_golden(name))) {
    if (file.path().extension() != ".gguf") fs::copy(file.path(), folder.path() / file.path().filename());
  }
  nlohmann::json config = formats::read_json_file(folder.path() / "config.json", 1 << 20).value();
  change(config);
  std::ofstream(folder.path() / "config.json") << config.dump();
  const auto file = model::open_model(folder.path());
  return file ? state_refusal(**file) : file.error().message;
}

struct BadSetting {
  const char* golden;
  const char* key;
  nlohmann::json value;
  const char* reason;
};

TEST(bad_state, settings_that_are_not_computed_are_named) {
  const nlohmann::json null;
  const BadSetting rows[] = {
      {"lfm2", "conv_bias", true, "\"conv_bias\" is true, which is not supported"},
      {"lfm2", "conv_L_cache", 0, "\"conv_L_cache\" is 0"},
      {"lfm2",
       "layer_types",
       {"conv", "linear_attention", "full_attention", "conv"},
       "\"layer_types\" has '\"linear_attention\"', which is not supported (supported: conv, full_attention)"},
      {"lfm2_moe", "layer_types", null, "\"layer_types\" is absent"},
      {"lfm2", "block_multiple_of", 0, "\"block_multiple_of\" is 0"},
      {"lfm2_moe", "use_expert_bias", false, "\"use_expert_bias\" is false"},
      {"granitemoehybrid", "position_embedding_type", "alibi", "\"position_embedding_type\" is '\"alibi\"'"},
      {"granitemoehybrid", "time_step_limit", {0.5, 0.0}, "\"time_step_limit\" is '[0.5,0.0]', expected two numbers"},
      {"granitemoehybrid", "time_step_limit", {-1.0, 0.5}, "\"time_step_limit\" is '[-1.0,0.5]', expected two numbers"},
      {"granitemoehybrid", "time_step_limit", 0.5, "\"time_step_limit\" is '0.5', expected two numbers"},
      {"nemotron_h", "time_step_min", -0.5, "\"time_step_min\" is '-0.5', expected a number"},
      {"granitemoehybrid", "mamba_proj_bias", true, "\"mamba_proj_bias\" is 'true'"},
      {"granitemoehybrid", "mamba_d_state", 31, "by metadata key \"granitehybrid.ssm.state_size\""},
      {"falcon_h1_norm", "mamba_norm_before_gate", true, "\"mamba_norm_before_gate\" is true"},
      {"falcon_h1", "ssm_multipliers", {1.0, 1.0}, "\"ssm_multipliers\" is '[1.0,1.0]', expected a list of 5 numbers"},
      {"falcon_h1", "mamba_n_heads", 16, "expected 336 rows"},
      {"falcon_h1", "tie_word_embeddings", "yes", "\"tie_word_embeddings\" is"},
      {"nemotron_h", "hybrid_override_pattern", "M-*-X", "\"hybrid_override_pattern\" is 'M-*-X'"},
      {"nemotron_h", "mlp_hidden_act", "silu", "\"mlp_hidden_act\" is '\"silu\"'"},
      {"nemotron_h_moe", "moe_latent_size", 32, "\"moe_latent_size\" is '32'"},
      {"olmo_hybrid",
       "layer_types",
       {"linear_attention", "sliding_attention", "full_attention", "linear_attention"},
       "\"layer_types\" has '\"sliding_attention\"', which is not supported (supported: linear_attention, "
       "full_attention)"},
      {"olmo_hybrid", "linear_key_head_dim", 32,
       "\"blk.0.ssm_conv1d_q.weight\": shape [96, 4]; expected [128, 4] by metadata key "
       "\"olmo-hybrid.ssm.state_size\""},
      {"olmo_hybrid", "linear_num_key_heads", 3, "expected a multiple of \"olmo-hybrid.ssm.group_count\", which is 3"},
      {"olmo_hybrid", "linear_value_head_dim", 0, "\"linear_value_head_dim\" is 0"},
      {"olmo_hybrid", "linear_allow_neg_eigval", 2, "\"linear_allow_neg_eigval\" is '2', expected true or false"},
      {"olmo_hybrid", "hidden_act", "gelu", "\"hidden_act\" is '\"gelu\"', which is not supported (supported: silu)"},
      {"nemotron_h_moe", "hybrid_override_pattern", "ME*-M", "\"hybrid_override_pattern\" is 'ME*-M'"},
  };
  for (const BadSetting& row : rows) {
    const auto change = [&](nlohmann::json& config) {
      config[row.key] = row.value;
      if (row.value.is_null()) config.erase(row.key);
    };
    EXPECT_EQ(refusal_of_config(row.golden, [](nlohmann::json&) {}), "") << row.golden;
    expect_one_line(refusal_of_config(row.golden, change), row.reason);
  }
}

// As Python writes it, beside a text with the same word.
TEST(families, a_limit_of_infinity_is_none) {
  const TempFolder folder;
  for (const fs::directory_entry& file : fs::directory_iterator(state_golden("granitemoehybrid"))) {
    if (file.path().extension() != ".gguf") fs::copy(file.path(), folder.path() / file.path().filename());
  }
  nlohmann::json config = formats::read_json_file(folder.path() / "config.json", 1 << 20).value();
  config.erase("time_step_limit");
  config["note"] = "Infinity \" Infinity";
  std::string text = config.dump();
  text.insert(1, "\"time_step_limit\": [0.0, Infinity], ");
  std::ofstream(folder.path() / "config.json") << text;
  const auto seen = formats::read_json_file(folder.path() / "config.json", 1 << 20);
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ((*seen)["note"], config["note"]);
  const auto file = model::open_model(folder.path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(state_refusal(**file), "");
}

// config.json of before there were layer types, and of what the library calls them today.
TEST(families, kinds_of_blocks_are_read_under_older_and_newer_names) {
  const auto attending = [](const std::string& name, const std::function<void(nlohmann::json&)>& change) {
    std::string kinds;
    const TempFolder folder;
    for (const fs::directory_entry& file : fs::directory_iterator(state_golden(name))) {
      if (file.path().extension() != ".gguf") fs::copy(file.path(), folder.path() / file.path().filename());
    }
    nlohmann::json config = formats::read_json_file(folder.path() / "config.json", 1 << 20).value();
    change(config);
    std::ofstream(folder.path() / "config.json") << config.dump();
    const auto file = model::open_model(folder.path());
    if (!file) return file.error().message;
    const auto spec = model::read_arch(**file);
    if (!spec) return spec.error().message;
    for (const model::BlockSpec& block : spec->blocks) kinds += block.has_attention ? '*' : block.has_ffn() ? '-' : 'M';
    return kinds;
  };
  EXPECT_EQ(attending("lfm2", [](nlohmann::json& config) {
              config.erase("layer_types");
              config["full_attn_idxs"] = {2};
            }),
            "--*-");
  EXPECT_EQ(attending("granitemoehybrid", [](nlohmann::json& config) {
              config["layer_types"] = {"linear_attention", "linear_attention", "full_attention", "linear_attention"};
            }),
            "--*-");
  EXPECT_EQ(attending("nemotron_h", [](nlohmann::json& config) {
              config.erase("hybrid_override_pattern");
              config.erase("num_hidden_layers");
              config["layers_block_type"] = {"mamba", "mlp", "attention", "mlp", "mamba"};
            }),
            "M-*-M");
}

}  // namespace
}  // namespace candor::testing
