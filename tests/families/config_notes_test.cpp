// What a folder's config.json or a GGUF file leaves out, and says in vain, is reported; what nobody reads is refused by
// name.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/all/make_backend.h"
#include "changed_golden.h"
#include "model/arch_text.h"
#include "model/gguf_settings.h"

namespace candor::testing {
namespace {

using nlohmann::json;

Result<std::unique_ptr<formats::ModelFile>> open_changed(const std::string& name,
                                                         const std::function<void(json&)>& change) {
  const TempFolder folder;
  for (const auto& file : std::filesystem::directory_iterator(golden_folder(name))) {
    if (file.path().extension() == ".safetensors") {
      std::filesystem::copy(file.path(), folder.path() / file.path().filename());
    }
  }
  json config = formats::read_json_file(golden_folder(name) / "config.json", 1 << 20).value();
  change(config);
  std::ofstream(folder.path() / "config.json") << config.dump();
  return model::open_model(folder.path());
}

std::string value_of(const std::vector<formats::AssumedSetting>& settings, const std::string& key) {
  const auto at = std::ranges::find(settings, key, &formats::AssumedSetting::key);
  return at == settings.end() ? "" : at->value;
}

std::string assumed(const formats::ModelFile& file, const std::string& key) {
  return value_of(file.info().assumed, key);
}

TEST(config_notes, a_whole_config_assumes_nothing_of_its_own) {
  const auto file = open_changed("llama", [](json&) {});
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE((*file)->info().assumed.empty()) << (*file)->info().assumed.front().key;
  EXPECT_TRUE((*file)->info().without_effect.empty());
}

TEST(config_notes, what_is_left_out_is_named_with_its_value_and_source) {
  const auto file = open_changed("cohere", [](json& config) {
    for (const char* key : {"logit_scale", "layer_norm_eps", "rope_parameters", "head_dim"}) config.erase(key);
  });
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(assumed(**file, "logit_scale"), "0.0625");
  EXPECT_EQ(assumed(**file, "layer_norm_eps"), "1e-05");
  EXPECT_EQ(assumed(**file, "rope_theta"), "500000.0");
  EXPECT_EQ((*file)->info().assumed_by.substr(0, 13), "transformers ");
}

TEST(config_notes, what_is_computed_from_other_keys_is_named) {
  const auto file = open_changed("gemma3", [](json& config) { config.erase("layer_types"); });
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_NE(assumed(**file, "layer_types").find("sliding_attention"), std::string::npos);
}

TEST(config_notes, keys_that_the_model_does_not_read_are_named) {
  const auto file = open_changed("qwen3", [](json& config) {
    config["my_own_key"] = 3;
    config["partial_rotary_factor"] = 0.5;  // which the library's Qwen3 passes over
    config["rope_parameters"].erase("partial_rotary_factor");
  });
  ASSERT_TRUE(file) << file.error().message;
  const auto& names = (*file)->info().without_effect;
  EXPECT_NE(std::ranges::find(names, "my_own_key"), names.end());
  EXPECT_NE(std::ranges::find(names, "partial_rotary_factor"), names.end());
}

Result<std::unique_ptr<formats::ModelFile>> open_with_generation(const std::string& text) {
  const TempFolder folder;
  for (const auto& file : std::filesystem::directory_iterator(golden_folder("llama"))) {
    if (file.path().extension() != ".gguf") std::filesystem::copy(file.path(), folder.path() / file.path().filename());
  }
  std::ofstream(folder.path() / "generation_config.json") << text;
  return model::open_model(folder.path());
}

TEST(config_notes, what_generation_config_suggests_is_named) {
  const auto file = open_with_generation(
      R"({"eos_token_id": 2, "temperature": 0.6, "top_p": 0.95, "top_k": null, "use_cache": true, "my_stage": [1]})");
  ASSERT_TRUE(file) << file.error().message;
  const auto& suggested = (*file)->info().suggested;
  EXPECT_EQ(suggested.size(), 3U);
  EXPECT_EQ(value_of(suggested, "temperature"), "0.6");
  EXPECT_EQ(value_of(suggested, "top_p"), "0.95");
  EXPECT_EQ(value_of(suggested, "my_stage"), "[1]");
}

TEST(config_notes, a_generation_config_that_is_none_is_refused) {
  for (const char* text : {"[1]", "{\"temperature\": ", "7"}) {
    const auto file = open_with_generation(text);
    ASSERT_FALSE(file) << text;
    EXPECT_NE(file.error().message.find("generation_config.json"), std::string::npos) << file.error().message;
  }
}

// llama.cpp's own values: softcaps of 50 and 30, a window of 4 096 in every other layer.
TEST(config_notes, what_a_gguf_file_leaves_out_is_that_of_llama_cpp_and_named) {
  const auto original = gguf_golden("gemma2");
  MemoryModelFile file = copy_of_gguf(*original);
  for (const char* key :
       {"gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping", "gemma2.attention.sliding_window"}) {
    file.erase(key);
  }
  const auto spec = model::read_arch(file);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->blocks[0].attn.softcap, 50.0f);
  EXPECT_EQ(spec->blocks[0].attn.window_tokens, 4096);
  EXPECT_EQ(spec->head.logits.softcap, 30.0f);
  const auto settings = model::assumed_of_gguf(file, *spec);
  EXPECT_EQ(value_of(settings, "gemma2.attn_logit_softcapping"), "50");
  EXPECT_EQ(value_of(settings, "gemma2.final_logit_softcapping"), "30");
  EXPECT_EQ(value_of(settings, "gemma2.attention.sliding_window"), "4096");
  const auto whole = model::assumed_of_gguf(*original, *spec);
  EXPECT_EQ(value_of(whole, "gemma2.attn_logit_softcapping"), "");
}

TEST(config_notes, what_a_gguf_file_suggests_is_named) {
  const auto original = gguf_golden("llama");
  MemoryModelFile file = copy_of_gguf(*original);
  EXPECT_TRUE(model::suggested_of_gguf(file).empty());
  file.set("general.sampling.temp", 0.5);
  file.set_ints("general.sampling.sequence", {1, 2});
  EXPECT_EQ(value_of(model::suggested_of_gguf(file), "temp"), "0.5");
  EXPECT_EQ(value_of(model::suggested_of_gguf(file), "sequence"), "a list");
}

struct Refused {
  const char* golden;
  const char* key;
  json value;
  const char* line;
};

TEST(config_notes, what_would_count_and_is_not_read_is_refused_by_name) {
  const Refused rows[] = {
      {"mixtral", "per_layer_config", {{"0", {{"head_dim", 8}}}}, "\"per_layer_config\" is"},
      {"qwen2_moe", "qkv_bias", false, "\"qkv_bias\" is 'false', which is not supported (supported: true)"},
      {"llama", "attention_bias", true, "\"attention_bias\" is true, but tensor"},
      {"llama", "attention_bias", "yes", "\"attention_bias\" is '\"yes\"', expected true or false"},
      {"llama", "hidden_size", -4, "\"hidden_size\" is '-4', expected a whole number"},
      {"llama", "rms_norm_eps", "small", "\"rms_norm_eps\" is '\"small\"', expected a number"},
      {"llama", "vocab_size", 300, "\"vocab_size\" is '300', but the embedding has 288 rows; set it to 288"},
      {"llama", "rope_theta", 3.0, "\"rope_theta\" is '3.0', expected what the rotary settings say of it"},
      {"llama", "rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}, "the same as \"rope_parameters\""},
      {"llama", "rope_parameters", 7, "\"rope_parameters\" is '7', expected an object"},
      {"llama", "rope_parameters", {{"rope_type", "yarn"}}, "a \"factor\", which yarn needs"},
      {"llama", "rope_parameters", {{"rope_type", "spiral"}}, "\"rope_type\" is '\"spiral\"', which is not supported"},
      {"gpt2", "hidden_size", 32, "two names of the same"},
      {"stablelm", "use_qkv_bias", false, "but the folder has tensor"},
      {"gemma4_text", "attention_k_eq_v", true, "\"attention_k_eq_v\" is true"},
      {"ministral", "head_dim", nullptr, "\"head_dim\" is absent, and transformers"},
  };
  for (const Refused& row : rows) {
    const std::string refusal = refusal_with(row.golden, [&](json& config) { config[row.key] = row.value; });
    EXPECT_NE(refusal.find(row.line), std::string::npos) << row.golden << " " << row.key << ": " << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
}

// Phi-3's first training ended at 32 positions.
TEST(long_rope, factors_are_those_of_the_context_that_is_asked_for) {
  const auto file = model::open_model(golden_folder("phi3"));
  ASSERT_TRUE(file) << file.error().message;
  const auto backend = backend::make_backend("reference", {.n_threads = 1});
  const auto hash_with = [&](int64_t n_ctx) {
    return (*model::Model::load(**file, **backend, {.n_ctx = n_ctx}))->hash();
  };
  EXPECT_EQ(hash_with(0), hash_with(33));
  EXPECT_EQ(hash_with(32), hash_with(1));
  EXPECT_NE(hash_with(32), hash_with(33)) << "the fingerprint knows the factors";
  model::ArchSpec spec = *model::read_arch(**file);
  EXPECT_NE(model::to_text(spec).find("contexts above 32 positions; -c 32"), std::string::npos);
  const std::vector<float> longer = spec.blocks[0].attn.rope.frequency_factors;
  model::fit_context(spec, 32);
  EXPECT_NE(model::to_text(spec).find("contexts up to 32 positions"), std::string::npos);
  EXPECT_EQ(spec.blocks[1].attn.rope.frequency_factors, spec.short_context.frequency_factors);
  EXPECT_NE(spec.blocks[1].attn.rope.frequency_factors, longer);
}

}  // namespace
}  // namespace candor::testing
