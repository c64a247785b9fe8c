#include "image/prepare.h"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "image/geometry.h"
#include "image/image_test_support.h"
#include "image/processor_config.h"

namespace candor::image {
namespace {

std::string processor_text(const std::string& name) {
  std::ifstream file = golden("processors/" + name + ".json");
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Bytes instead of numbers: the pixels are exact.
Recipe without_normalisation(Recipe recipe) {
  recipe.normalisation = {.does_rescale = false, .does_normalise = false};
  return recipe;
}

std::string hash_of_bytes(const Tile& tile) {
  const std::vector<uint8_t> bytes(tile.patches.begin(), tile.patches.end());
  return half_hash(std::as_bytes(std::span(bytes)));
}

struct Case {
  std::string name;
  TowerSides tower;
  int32_t width, height;
  size_t n_tiles, index;
  int32_t rows, cols;
  std::string hash;
};

TEST(prepare, every_processor_gives_the_patches_of_transformers) {
  std::ifstream file = golden("prepared.txt");
  int n_cases = 0;
  std::optional<Prepared> last;
  for (Case each; file >> each.name >> each.tower.patch >> each.tower.merge >> each.width >> each.height >>
                  each.n_tiles >> each.index >> each.rows >> each.cols >> each.hash;
       ++n_cases) {
    const std::string place = each.name + " " + std::to_string(each.width) + " x " + std::to_string(each.height);
    if (each.index == 0) {
      const auto recipe = recipe_of(processor_text(each.name), each.tower);
      ASSERT_TRUE(recipe) << place << ": " << recipe.error().message;
      auto prepared = prepare(picture(each.width, each.height), without_normalisation(*recipe));
      ASSERT_TRUE(prepared) << place << ": " << prepared.error().message;
      last = std::move(*prepared);
      EXPECT_EQ(last->original, (Size{each.height, each.width}));
      EXPECT_EQ(last->n_tile_rows * last->n_tile_cols, each.n_tiles == 1 ? 0 : static_cast<int>(each.n_tiles) - 1)
          << place;
    }
    ASSERT_EQ(last->tiles.size(), each.n_tiles) << place;
    const Tile& tile = last->tiles[each.index];
    EXPECT_EQ(tile.rows, each.rows) << place;
    EXPECT_EQ(tile.cols, each.cols) << place;
    EXPECT_EQ(hash_of_bytes(tile), each.hash) << place << ", tile " << each.index;
  }
  EXPECT_GT(n_cases, 150);
}

// fitted.txt: sizes that an image may have, and the canvas and the size on it that transformers computes.
TEST(prepare, llama_4s_tiles_fit_images_as_those_of_transformers) {
  std::ifstream file = golden("fitted.txt");
  int n_cases = 0;
  Size image, grid, size;
  for (FittedTiles layout; file >> image.width >> image.height >> layout.tile_side >> layout.max_tiles >>
                           layout.is_largest >> grid.height >> grid.width >> size.height >> size.width;
       ++n_cases) {
    EXPECT_EQ(fitted_grid(image, layout), grid) << image.width << " x " << image.height;
    EXPECT_EQ(fitted_size(image, grid, layout), size) << image.width << " x " << image.height;
  }
  EXPECT_EQ(n_cases, 300);
}

// canvases.txt, as fitted.txt; and the rows that padding does not cover.
TEST(prepare, canvases_hold_images_as_those_of_transformers) {
  std::ifstream file = golden("canvases.txt");
  const CanvasTiles layout{336, {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}}};
  int n_cases = 0;
  Size image, canvas, size;
  for (Part part; file >> image.width >> image.height >> canvas.height >> canvas.width >> size.height >> size.width >>
                  part.top >> part.left >> part.height >> part.width;
       ++n_cases) {
    EXPECT_EQ(best_canvas(image, layout), canvas) << image.width << " x " << image.height;
    EXPECT_EQ(size_on_canvas(image, canvas), size) << image.width << " x " << image.height;
    EXPECT_EQ(unpadded(image, {canvas.height / 14, canvas.width / 14}), part) << image.width << " x " << image.height;
  }
  EXPECT_GT(n_cases, 250);
}

TEST(prepare, an_image_stands_in_the_middle_of_its_canvas_and_is_always_read_as_a_whole_too) {
  const Image image{.width = 4, .height = 1, .rgb = std::vector<uint8_t>(12, 255)};
  const Recipe recipe{.layout = CanvasTiles{4, {{4, 4}}}, .filter = Filter::kBilinear, .patch_side = 4};
  const auto prepared = prepare(image, without_normalisation(recipe));
  ASSERT_TRUE(prepared) << prepared.error().message;
  ASSERT_EQ(prepared->tiles.size(), 2U);
  EXPECT_EQ(prepared->whole_tile, 1);
  const std::vector<float>& part = prepared->tiles[0].patches;
  EXPECT_EQ(std::vector<float>(part.begin(), part.begin() + 12),
            (std::vector<float>{0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0}));
  EXPECT_EQ(prepared->tiles[1].patches, std::vector<float>(48, 255));
}

TEST(prepare, what_fitted_tiles_leave_is_black_at_the_right_and_at_the_bottom) {
  const Image image{.width = 6, .height = 3, .rgb = std::vector<uint8_t>(54, 255)};
  const auto prepared = prepare(
      image, without_normalisation({.layout = FittedTiles{4, 4}, .filter = Filter::kBilinear, .patch_side = 4}));
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(prepared->n_tile_rows, 1);
  EXPECT_EQ(prepared->n_tile_cols, 2);
  ASSERT_EQ(prepared->tiles.size(), 3U);
  const std::vector<float>& right = prepared->tiles[1].patches;
  EXPECT_EQ(std::vector<float>(right.begin(), right.begin() + 4), (std::vector<float>{255, 255, 0, 0}));
  EXPECT_EQ(std::vector<float>(right.begin() + 12, right.begin() + 16), (std::vector<float>{0, 0, 0, 0}));
}

TEST(prepare, bytes_become_the_f32_of_the_torchvision_processors) {
  std::ifstream file = golden("normalised.txt");
  int n_cases = 0;
  Normalisation how;
  for (std::string hash; file >> how.does_rescale >> how.does_normalise >> how.mean[0] >> how.mean[1] >> how.mean[2] >>
                         how.deviation[0] >> how.deviation[1] >> how.deviation[2] >> hash;
       ++n_cases) {
    const auto table = normalised_bytes(how);
    EXPECT_EQ(half_hash(std::as_bytes(std::span(table))), hash)
        << how.mean[0] << how.does_rescale << how.does_normalise;
  }
  EXPECT_EQ(n_cases, 9);
}

TEST(prepare, the_whole_image_is_known_among_its_tiles) {
  const Image image = picture(120, 40);
  const auto at = [&](const Layout& layout) {
    const auto prepared = prepare(image, {.layout = layout, .patch_side = 8});
    EXPECT_TRUE(prepared) << prepared.error().message;
    return std::array{prepared->whole_tile, prepared->n_tile_rows, prepared->n_tile_cols,
                      static_cast<int32_t>(prepared->tiles.size())};
  };
  EXPECT_EQ(at(FixedSize{{16, 16}}), (std::array{0, 0, 0, 1}));
  EXPECT_EQ(at(PanAndScan{{16, 16}, 16, 4, 1.2}), (std::array{0, 1, 3, 4}));
  EXPECT_EQ(at(SquareTiles{.longest_edge = 64, .tile_side = 32}), (std::array{2, 1, 2, 3}));
  EXPECT_EQ(at(BoundedEdges{16, 32, true}), (std::array{4, 2, 2, 5}));
  EXPECT_EQ(at(ShapedTiles{{16, 16}, 1, 6}), (std::array{3, 1, 3, 4}));
}

TEST(prepare, patches_stand_row_by_row_and_hold_channel_then_row_then_column) {
  Image image{.width = 5, .height = 2};
  for (int i = 0; i < 30; ++i) image.rgb.push_back(static_cast<uint8_t>(i));
  const Tile tile = cut_patches(image, 2, {.does_rescale = false, .does_normalise = false});
  EXPECT_EQ(tile.rows, 1);
  EXPECT_EQ(tile.cols, 2);  // the fifth column is no whole patch
  EXPECT_EQ(tile.patches, (std::vector<float>{0, 3, 15, 18, 1, 4,  16, 19, 2, 5,  17, 20,  //
                                              6, 9, 21, 24, 7, 10, 22, 25, 8, 11, 23, 26}));
}

TEST(prepare, shapes_and_sizes_that_a_recipe_cannot_take_are_errors_of_one_line) {
  const auto message = [](const Image& image, const Layout& layout) {
    const auto prepared = prepare(image, {.layout = layout, .patch_side = 14});
    return prepared ? std::string("an image") : prepared.error().message;
  };
  EXPECT_NE(message(picture(201, 1), SmartSize{}).find("one side may be 200 times the other"), std::string::npos);
  EXPECT_NE(message(picture(20000, 1), SmartTiles{}).find("too many times the other"), std::string::npos);
  EXPECT_NE(message(picture(30, 20), FixedSize{{13, 40}}).find("becomes 40 x 13, less than a patch of 14"),
            std::string::npos);
  EXPECT_NE(message(picture(30, 20), FixedSize{{6000, 6000}}).find("becomes more than 33554432"), std::string::npos);
  EXPECT_NE(message(picture(1, 30'000), ShortestEdge{.edge = 224}).find("sides may be 1 to 65535"), std::string::npos);
  EXPECT_NE(message(picture(30, 20), ShapedTiles{{4000, 4000}, 9, 12}).find("an image of"), std::string::npos);
  EXPECT_NE(message(picture(30, 20), SquareTiles{.longest_edge = 4096, .tile_side = 14}).find("at most 1024 are made"),
            std::string::npos);
  EXPECT_NE(message(Image{}, FixedSize{{28, 28}}).find("an image of 0 x 0 pixels"), std::string::npos);
  EXPECT_EQ(message(picture(1, 1), SquareTiles{.longest_edge = 28, .tile_side = 28}), "an image");
  EXPECT_EQ(message(picture(1, 30'000), TokenBudget{70, 3}), "an image");
  EXPECT_EQ(message(picture(1, 30'000), LongestEdge{.bound = {1540, 1540}, .merge = 2}), "an image");
}

}  // namespace
}  // namespace candor::image
