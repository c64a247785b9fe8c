// Towers and projectors against the `transformers` library, out of folders and of mmproj files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "backend/all/make_backend.h"
#include "image/prepare.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "support/temp_folder.h"
#include "vision/encoder.h"
#include "vision/vision_files.h"
#include "vision_golden.h"

namespace candor::testing {
namespace {

vision::EncodedImage encode(const formats::ModelFile& file, const model::ArchSpec& text, const char* backend,
                            int32_t n_threads = 2, const image::Recipe* recipe = nullptr) {
  auto spec = vision::read_vision(file, text);
  EXPECT_TRUE(spec) << spec.error().message;
  if (!spec) return {};
  const auto prepared = image::prepare(golden_image(), recipe == nullptr ? spec->recipe : *recipe);
  EXPECT_TRUE(prepared) << prepared.error().message;
  auto made = backend::make_backend(backend, {.n_threads = n_threads});
  EXPECT_TRUE(made) << made.error().message;
  auto encoder = vision::Encoder::load(file, *spec, std::move(*made));
  EXPECT_TRUE(encoder) << encoder.error().message;
  vision::EncodedImage encoded;
  if (!encoder) return encoded;
  for (const image::Tile& tile : prepared->tiles) {
    const auto done = (*encoder)->encode(tile, encoded);
    EXPECT_TRUE(done) << done.error().message;
  }
  (*encoder)->finish(*prepared, encoded);
  return encoded;
}

class Tower : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto opened = vision::open_tower_of(vision_golden(GetParam()));
    ASSERT_TRUE(opened) << opened.error().message;
    folder_ = std::move(*opened);
    ASSERT_NE(folder_, nullptr);
    const auto whole = model::open_model(vision_golden(GetParam()));
    ASSERT_TRUE(whole) << whole.error().message;
    auto text = model::read_arch(**whole);
    ASSERT_TRUE(text) << text.error().message;
    text_ = std::move(*text);
  }
  std::unique_ptr<formats::ModelFile> folder_;
  model::ArchSpec text_;
};

// 1e-4 of the largest number, in f32.
TEST_P(Tower, gives_the_librarys_rows) {
  const std::vector<float> expected = read_floats(vision_golden(GetParam()) / "features.f32");
  const vision::EncodedImage seen = encode(*folder_, text_, "reference");
  ASSERT_EQ(seen.rows.size(), expected.size());
  float largest = 0.0f;
  float difference = 0.0f;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(expected[i] - seen.rows[i]));
  }
  EXPECT_GT(largest, 0.01f);
  EXPECT_LE(difference, 1e-4f * largest);
}

TEST_P(Tower, has_the_same_bits_out_of_a_folder_and_an_mmproj_file) {
  const std::filesystem::path path = vision_golden(GetParam()) / "mmproj.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "llama.cpp has no such file";
  const auto file = vision::open_mmproj(path);
  ASSERT_TRUE(file) << file.error().message;
  // Files do not say all limits that a folder says of an image's size.
  const auto spec = vision::read_vision(*folder_, text_);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(encode(*folder_, text_, "cpu").rows, encode(**file, text_, "cpu", 2, &spec->recipe).rows);
}

TEST_P(Tower, has_the_same_bits_with_every_number_of_threads) {
  const auto one = encode(*folder_, text_, "cpu", 1).rows;
  EXPECT_EQ(one, encode(*folder_, text_, "cpu", 2).rows);
  EXPECT_EQ(one, encode(*folder_, text_, "cpu", 5).rows);
}

TEST_P(Tower, of_another_width_is_refused) {
  text_.dim += 16;
  const auto spec = vision::read_vision(*folder_, text_);
  ASSERT_FALSE(spec);
  EXPECT_NE(spec.error().message.find("another model's"), std::string::npos) << spec.error().message;
}

size_t bytes_of(const formats::ModelFile& file, const vision::VisionSpec& spec) {
  auto encoder = vision::Encoder::load(file, spec, std::move(*backend::make_backend("cpu", {.n_threads = 1})));
  EXPECT_TRUE(encoder) << encoder.error().message;
  return encoder ? (*encoder)->n_bytes() : 0;
}

// Vectors that the encoder itself holds.
TEST_P(Tower, counts_all_its_bytes) {
  const auto spec = vision::read_vision(*folder_, text_);
  ASSERT_TRUE(spec) << spec.error().message;
  vision::VisionSpec less = *spec;
  less.newline.clear();
  less.standard.shift = less.standard.gain = {};
  const auto n_newline = static_cast<size_t>(spec->newline.empty() ? 0 : text_.dim);
  const auto n_standard = static_cast<size_t>(spec->standard.shift.empty() ? 0 : 2 * spec->tower.dim);
  EXPECT_EQ(bytes_of(*folder_, *spec) - bytes_of(*folder_, less), (n_newline + n_standard) * sizeof(float));
}

INSTANTIATE_TEST_SUITE_P(all, Tower, ::testing::ValuesIn(kVisionGoldens),
                         [](const auto& one) { return std::string(one.param); });

// Of config.json, or of the image processor's file where the pointer begins with "/processor".
struct OddSetting {
  const char* golden;
  const char* pointer;
  const char* value;
  const char* named;  // in the message
};
const OddSetting kOddSettings[] = {
    {"llava", "/vision_config/model_type", "\"siglip_vision_model\"", "model_type"},
    {"llava", "/vision_config/hidden_act", "\"relu\"", "hidden_act"},
    {"llava", "/vision_feature_layer", "[1, 2]", "vision_feature_layer"},
    {"llava", "/vision_feature_layer", "0", "vision_feature_layer"},
    {"llava", "/vision_feature_layer", "-4", "vision_feature_layer"},
    {"llava", "/vision_feature_select_strategy", "\"full\"", "vision_feature_select_strategy"},
    {"llava", "/projector_hidden_act", "\"silu\"", "projector_hidden_act"},
    {"llava", "/processor/size", "{\"height\": 32, \"width\": 32}", "preprocessor_config"},
    {"llava", "/processor/crop_size", "{\"height\": 24, \"width\": 24}", "preprocessor_config"},
    {"llava", "/processor/resample", "2", "preprocessor_config"},
    {"llava", "/processor/do_rescale", "false", "do_rescale"},
    {"llava", "/processor/image_processor_type", "\"ViTImageProcessor\"", "ViTImageProcessor"},
    {"internvl", "/vision_config/norm_type", "\"batch_norm\"", "norm_type"},
    {"internvl", "/vision_config/image_size", "[32, 64]", "image_size"},
    {"internvl", "/vision_config/hidden_act", "\"relu\"", "hidden_act"},
    {"internvl", "/vision_config/use_absolute_position_embeddings", "false", "use_absolute_position_embeddings"},
    {"internvl", "/downsample_ratio", "0.3", "downsample_ratio"},
    {"internvl", "/vision_feature_layer", "-2", "vision_feature_layer"},
    {"internvl", "/processor/size", "{\"height\": 64, \"width\": 64}", "preprocessor_config"},
    {"internvl_rms", "/vision_config/layer_norm_eps", "1e-5", "attn_q_norm"},
    {"gemma4", "/vision_config/use_clipped_linears", "false", "use_clipped_linears"},
    {"gemma4", "/vision_config/use_clipped_linears", "1", "use_clipped_linears"},
    {"gemma4", "/vision_config/standardize", "true", "standardize"},
    {"gemma4_wide", "/vision_config/standardize", "false", "standardize"},
    {"gemma4", "/vision_config/attention_bias", "true", "attention_bias"},
    {"gemma4", "/vision_config/hidden_activation", "\"relu\"", "hidden_act"},
    {"gemma4", "/vision_config/head_dim", "32", "head_dim"},
    {"gemma4_wide", "/vision_config/num_key_value_heads", "2", "num_key_value_heads"},
    {"gemma4", "/vision_config/position_embedding_size", "100", "position_embedding_size"},
    {"gemma4", "/vision_config/rope_parameters/rope_type", "\"yarn\"", "rope_parameters"},
    {"gemma4", "/vision_config/pooling_kernel_size", "2", "pooling_kernel_size"},
    {"gemma4", "/processor/max_soft_tokens", "100", "max_soft_tokens"},
    {"gemma4", "/processor/patch_size", "16", "patch_size"},
    {"gemma4", "/processor/resample", "2", "preprocessor_config"},
    {"gemma4", "/processor/image_processor_type", "\"Gemma3ImageProcessor\"", "preprocessor_config"},
    {"gemma4_unified", "/vision_config/model_type", "\"gemma4_vision\"", "model_type"},
    {"gemma4_unified", "/vision_config/model_patch_size", "16", "model_patch_size"},
    {"gemma4_unified", "/vision_config/mm_posemb_size", "40", "mm_posemb_size"},
    {"gemma4_unified", "/processor/max_soft_tokens", "71", "max_soft_tokens"},
    {"idefics2", "/perceiver_config/hidden_act", "\"gelu\"", "hidden_act"},
    {"idefics2", "/perceiver_config/resampler_n_latents", "0", "resampler_n_latents"},
    {"idefics2", "/perceiver_config/num_key_value_heads", "3", "num_key_value_heads"},
    {"idefics2", "/perceiver_config/rms_norm_eps", "\"small\"", "rms_norm_eps"},
    {"idefics2", "/perceiver_config", "3", "perceiver_config"},
    {"idefics2", "/vision_config/hidden_act", "\"relu\"", "hidden_act"},
    {"idefics2", "/processor/size", "{\"height\": 32, \"width\": 32}", "shortest_edge"},
    {"idefics2", "/processor/resample", "3", "preprocessor_config"},
    {"lfm2_vl", "/vision_config/num_patches", "250", "num_patches"},
    {"lfm2_vl", "/vision_config/model_type", "\"siglip_vision_model\"", "model_type"},
    {"lfm2_vl", "/projector_hidden_act", "\"silu\"", "projector_hidden_act"},
    {"lfm2_vl", "/processor/downsample_factor", "4", "downsample_factor"},
    {"lfm2_vl", "/processor/encoder_patch_size", "14", "encoder_patch_size"},
    {"lfm2_vl", "/processor/tile_size", "500", "tile_size"},
    {"lfm2_vl", "/processor/use_thumbnail", "false", "use_thumbnail"},
    {"lfm2_vl", "/processor/resample", "3", "preprocessor_config"},
    {"mistral3", "/vision_config/model_type", "\"siglip_vision_model\"", "model_type"},
    {"mistral3", "/vision_config/hidden_act", "\"quick_gelu\"", "hidden_act"},
    {"mistral3", "/vision_config/num_channels", "1", "num_channels"},
    {"mistral3", "/vision_config/num_attention_heads", "16", "expected a width that 4 divides"},
    {"mistral3", "/vision_config/rope_parameters/rope_type", "\"yarn\"", "rope_type"},
    {"mistral3", "/vision_config/rope_parameters/rope_theta", "0", "rope_theta"},
    {"mistral3", "/projector_hidden_act", "\"silu\"", "projector_hidden_act"},
    {"mistral3", "/spatial_merge_size", "0", "spatial_merge_size"},
    {"mistral3", "/vision_feature_layer", "[1, 2]", "vision_feature_layer"},
    {"mistral3", "/text_config/rms_norm_eps", "\"small\"", "rms_norm_eps"},
    {"mistral3", "/processor/patch_size", "14", "patch_size"},
    {"mistral3", "/processor/size", "{\"longest_edge\": 2000}", "preprocessor_config"},
    {"mistral3", "/processor/resample", "2", "preprocessor_config"},
    {"mistral3", "/processor/image_processor_type", "\"CLIPImageProcessor\"", "preprocessor_config"},
    {"llama4", "/vision_config/model_type", "\"pixtral\"", "model_type"},
    {"llama4", "/vision_config/hidden_act", "\"silu\"", "hidden_act"},
    {"llama4", "/vision_config/num_channels", "4", "num_channels"},
    {"llama4", "/vision_config/multi_modal_projector_bias", "true", "multi_modal_projector_bias"},
    {"llama4", "/vision_config/pixel_shuffle_ratio", "0.3", "pixel_shuffle_ratio"},
    {"llama4", "/vision_config/rope_parameters/rope_type", "\"linear\"", "rope_type"},
    {"llama4", "/processor/size", "{\"height\": 64, \"width\": 64}", "preprocessor_config"},
    {"llama4", "/processor/size", "{\"height\": 32, \"width\": 64}", "size"},
    {"llama4", "/processor/max_patches", "1000", "max_patches"},
    {"llama4", "/processor/resample", "3", "preprocessor_config"},
    {"llama4", "/processor/image_processor_type", "\"GotOcr2ImageProcessor\"", "preprocessor_config"},
    {"llava_next", "/image_grid_pinpoints", "[[32, 32]]", "image_grid_pinpoints"},
    {"llava_next", "/processor/image_grid_pinpoints", "[[32, 32]]", "image_grid_pinpoints"},
    {"llava_next", "/processor/image_grid_pinpoints", "[[32, 33]]", "image_grid_pinpoints"},
    {"llava_next", "/processor/image_grid_pinpoints", "[32]", "image_grid_pinpoints"},
    {"llava_next", "/processor/crop_size", "{\"height\": 24, \"width\": 24}", "crop_size"},
    {"llava_next", "/processor/size", "{\"shortest_edge\": 64}", "crop_size"},
    {"llava_next", "/processor/image_processor_type", "\"CLIPImageProcessor\"", "preprocessor_config"},
    {"qwen2_vl", "/vision_config/hidden_act", "\"relu\"", "hidden_act"},
    {"qwen2_vl", "/vision_config/embed_dim", "0", "embed_dim"},
    {"qwen2_vl", "/vision_config/mlp_ratio", "-1", "mlp_ratio"},
    {"qwen2_vl", "/vision_config/mlp_ratio", "1e9", "mlp_ratio"},
    {"qwen2_vl", "/vision_config/in_channels", "1", "in_channels"},
    {"qwen2_vl", "/vision_config/temporal_patch_size", "3", "temporal_patch_size"},
    {"qwen2_vl", "/vision_config/rope_parameters/rope_theta", "-2", "rope_theta"},
    {"pixtral", "/vision_feature_select_strategy", "\"default\"", "vision_feature_select_strategy"},
};

// What reading the changed folder says.
std::string message_of(const OddSetting& odd) {
  const TempFolder temp;
  const std::filesystem::path& folder = temp.path();
  std::filesystem::copy(vision_golden(odd.golden), folder);
  const std::string pointer = odd.pointer;
  const bool is_processor = pointer.starts_with("/processor");
  const auto path = folder / (is_processor ? "preprocessor_config.json" : "config.json");
  auto settings = nlohmann::json::parse(std::ifstream(path));
  settings[nlohmann::json::json_pointer(is_processor ? pointer.substr(10) : pointer)] =
      nlohmann::json::parse(odd.value);
  std::ofstream(path) << settings.dump();
  const auto file = vision::open_tower_of(folder);
  if (!file) return file.error().message;
  model::ArchSpec text;
  text.dim = expected_of(odd.golden).at("width");
  const auto spec = vision::read_vision(**file, text);
  return spec ? "it is read" : spec.error().message;
}

TEST(Settings, that_are_not_known_are_refused_by_name) {
  for (const OddSetting& odd : kOddSettings) {
    const std::string message = message_of(odd);
    EXPECT_NE(message.find(odd.named), std::string::npos) << odd.pointer << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace candor::testing
