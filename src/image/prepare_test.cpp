#include "image/prepare.h"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

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
