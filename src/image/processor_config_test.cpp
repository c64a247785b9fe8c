#include "image/processor_config.h"

#include <gtest/gtest.h>

namespace candor::image {
namespace {

std::string message_of(std::string_view text, const TowerSides& tower = {.patch = 14}) {
  const auto recipe = recipe_of(text, tower);
  return recipe ? "read: " + describe(*recipe) : recipe.error().message;
}

TEST(processor_config, defaults_are_those_of_the_class) {
  EXPECT_EQ(
      message_of(R"({"image_processor_type": "SiglipImageProcessorFast"})"),
      "read: resized to 224 x 224; bicubic; patches of 14; times 0.00392156862745098, mean 0.5 0.5 0.5, deviation "
      "0.5 0.5 0.5");
  EXPECT_EQ(
      message_of(R"({"image_processor_type": "Idefics3ImageProcessor", "do_rescale": false, "do_normalize": false})"),
      "read: long side 1456, tiles and the whole of 364 x 364; lanczos; patches of 14; as bytes");
  EXPECT_EQ(message_of(R"({"image_processor_type": "GotOcr2ImageProcessor", "do_normalize": false})"),
            "read: resized to 384 x 384; bicubic; patches of 14; times 0.00392156862745098");
  EXPECT_EQ(message_of(R"({"image_processor_type": "Llama4ImageProcessorFast", "max_patches": 9})"),
            "read: 1 to 9 tiles of 336 x 336, padded, and the whole; bilinear; patches of 14; times "
            "0.00392156862745098, mean 0.5 0.5 0.5, deviation 0.5 0.5 0.5, in bf16");
  const auto clip = recipe_of(R"({"image_processor_type": "CLIPImageProcessor"})", {.patch = 14});
  EXPECT_EQ(clip->layout, Layout(ShortestEdge{.edge = 224, .crop = {224, 224}}));
  EXPECT_EQ(*clip, *recipe_of(R"({"feature_extractor_type": "CLIPFeatureExtractor", "size": 224})", {.patch = 14}));
}

TEST(processor_config, a_processor_config_holds_the_image_processor_inside) {
  const auto recipe =
      recipe_of(R"({"image_processor": {"image_processor_type": "PixtralImageProcessor", "patch_size": 16},
                                    "image_token": "[IMG]", "processor_class": "PixtralProcessor"})",
                {.patch = 16, .merge = 2});
  ASSERT_TRUE(recipe) << recipe.error().message;
  EXPECT_EQ(recipe->layout, Layout(LongestEdge{.bound = {1024, 1024}, .merge = 2}));
}

TEST(processor_config, processors_and_keys_that_are_not_known_are_refused_by_name) {
  EXPECT_EQ(message_of(R"({"image_processor_type": "ViTImageProcessor"})"),
            "'preprocessor_config.json' names the image processor 'ViTImageProcessor'; known are CLIP, Llava, Siglip, "
            "Gemma3, Gemma4, Gemma4Unified, "
            "Idefics2, Idefics3, SmolVLM, Qwen2VL, Pixtral, Lfm2Vl, GotOcr2, LlavaNext, Llama4 (each with "
            "...ImageProcessor)");
  EXPECT_TRUE(message_of("{}").starts_with("'preprocessor_config.json' names no image processor; known are"));
  EXPECT_EQ(
      message_of(R"({"image_processor_type": "SiglipImageProcessor", "do_sharpen": true})"),
      "'preprocessor_config.json': the key 'do_sharpen' is not known for SiglipImageProcessor; remove it if it has no "
      "effect");
  EXPECT_TRUE(
      message_of(R"({"image_processor_type": "SiglipImageProcessor", "do_sharpen": null})").starts_with("read: "));
}

TEST(processor_config, values_that_have_no_place_in_a_recipe_are_errors_that_name_the_key) {
  struct Row {
    const char* members;
    const char* expected;
  };
  const Row rows[] = {
      {R"("SiglipImageProcessor", "resample": 4)", "'resample' is 4, expected 0 (nearest)"},
      {R"("SiglipImageProcessor", "do_resize": false)", "'do_resize': false is not supported"},
      {R"("SiglipImageProcessor", "do_pad": true)", "'do_pad': true is not supported"},
      {R"("SiglipImageProcessor", "size": {"height": 224})", "expected height and width"},
      {R"("SiglipImageProcessor", "size": {"height": 0, "width": 1})",
       "'size' is 0, expected an integer of 1 to 65535"},
      {R"("SiglipImageProcessor", "size": {"max_height": 9})", "expected height and width, or shortest_edge"},
      {R"("SiglipImageProcessor", "image_std": [0, 1, 1])", "'image_std' is [0,1,1], expected three numbers above 0"},
      {R"("SiglipImageProcessor", "image_mean": [1, 1])", "'image_mean' is [1,1], expected three numbers"},
      {R"("SiglipImageProcessor", "image_std": 0)", "expected three numbers above 0"},
      {R"("SiglipImageProcessor", "rescale_factor": 0)", "'rescale_factor' is 0, expected a number"},
      {R"("CLIPImageProcessor", "size": {"shortest_edge": 9, "longest_edge": 10})",
       "expected shortest_edge, or height"},
      {R"("CLIPImageProcessor", "size": {"shortest_edge": 1099511627776})",
       "a side of 1099511627776 is more than 65535"},
      {R"("Qwen2VLImageProcessor", "patch_size": 16)", "'patch_size': the vision tower has patches of 14"},
      {R"("Qwen2VLImageProcessor", "merge_size": 2)", "'merge_size': 2, but the vision tower merges 1"},
      {R"("Idefics3ImageProcessor", "max_image_size": {"height": 3, "width": 3})", "expected longest_edge"},
      {R"("Gemma4ImageProcessor", "patch_size": 14, "max_soft_tokens": 100, "pooling_kernel_size": 1)",
       "'max_soft_tokens' is 100, expected 70, 140, 280, 560 or 1120"},
      {R"("Gemma4ImageProcessor", "patch_size": 14)", "'pooling_kernel_size': 3, but the vision tower's is 1"},
      {R"("Gemma4ImageProcessor")", "'patch_size': the vision tower has patches of 14"},
      {R"("GotOcr2ImageProcessor", "max_patches": 1000)", "'max_patches' is 1000, expected an integer of 1 to 64"},
  };
  for (const Row& row : rows) {
    const std::string message = message_of(std::string(R"({"image_processor_type": )") + row.members + "}");
    EXPECT_NE(message.find(row.expected), std::string::npos) << row.members << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_TRUE(message_of("[]").find("is no object") != std::string::npos);
  EXPECT_FALSE(recipe_of("{", {.patch = 14}));
  EXPECT_FALSE(recipe_of(R"({"image_processor_type": "SiglipImageProcessor"})", {.patch = 0}));
}

}  // namespace
}  // namespace candor::image
