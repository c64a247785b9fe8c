// Which part of an image each row shows, of every family.

#include "vision/row_regions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "image/prepare.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "vision/encoder.h"
#include "vision/vision_files.h"
#include "vision_golden.h"

namespace candor::testing {
namespace {

using image::Region;
using image::Size;

constexpr double kRounding = 1e-6;  // of pixels
const Size kSizes[] = {{37, 50}, {480, 640}, {900, 300}, {64, 64}, {31, 517}};

std::pair<double, double> clipped(double begin, double length, int32_t side) {
  const double first = std::clamp(begin, 0.0, static_cast<double>(side));
  const double last = std::clamp(begin + length, 0.0, static_cast<double>(side));
  return {first, last - first};
}

// One for each row, within the image; without width or height where it shows nothing of it.
std::vector<Region> row_regions(const vision::VisionSpec& spec, const image::Prepared& prepared) {
  std::vector<Region> regions;
  for (const vision::RowGrid& grid : vision::row_grids(spec, prepared)) {
    const double width = grid.from.width / grid.cols;
    const double height = grid.from.height / grid.rows;
    for (int32_t i = 0; i < grid.n_rows(); ++i) {
      const int32_t patch = grid.patch_of(i);
      if (patch < 0) {
        regions.emplace_back();
        continue;
      }
      const auto [left, across] = clipped(grid.from.left + patch % grid.cols * width, width, prepared.original.width);
      const auto [top, down] = clipped(grid.from.top + patch / grid.cols * height, height, prepared.original.height);
      regions.push_back({left, top, across, down});
    }
  }
  return regions;
}

class RowRegions : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto file = vision::open_tower_of(vision_golden(GetParam()));
    ASSERT_TRUE(file) << file.error().message;
    const auto whole = model::open_model(vision_golden(GetParam()));
    ASSERT_TRUE(whole) << whole.error().message;
    const auto text = model::read_arch(**whole);
    ASSERT_TRUE(text) << text.error().message;
    auto spec = vision::read_vision(**file, *text);
    ASSERT_TRUE(spec) << spec.error().message;
    spec_ = std::move(*spec);
  }

  // The middle of an image is all that some towers see, and whole patches all that others do.
  Region seen_of(Size size, const image::Prepared& prepared) const {
    if (std::holds_alternative<image::BoundedEdges>(spec_.recipe.layout)) return prepared.tiles.back().from;
    const auto* layout = std::get_if<image::ShortestEdge>(&spec_.recipe.layout);
    const Region whole{0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
    if (layout == nullptr) return whole;
    const double side = std::min(size.width, size.height);
    return {(size.width - side) / 2, (size.height - side) / 2, side, side};
  }

  vision::VisionSpec spec_;
};

TEST_P(RowRegions, are_one_for_each_row_within_the_image) {
  for (const Size size : kSizes) {
    const auto prepared = image::prepare_sizes(size, spec_.recipe);
    ASSERT_TRUE(prepared) << prepared.error().message;
    int32_t n_rows = 0;
    for (const int32_t n : vision::rows_of_tiles(spec_, *prepared)) n_rows += n;
    const std::vector<Region> regions = row_regions(spec_, *prepared);
    EXPECT_EQ(std::ssize(regions), n_rows);
    for (const Region& region : regions) {
      if (region.width == 0.0 || region.height == 0.0) continue;  // a line's end, or black around the image
      EXPECT_GE(region.left, 0.0);
      EXPECT_GE(region.top, 0.0);
      EXPECT_GT(region.width, 0.0);
      EXPECT_GT(region.height, 0.0);
      EXPECT_LE(region.left + region.width, size.width + kRounding);
      EXPECT_LE(region.top + region.height, size.height + kRounding);
    }
  }
}

// A pixel and a half beyond the middle: lengths are rounded where images are resized and cut.
TEST_P(RowRegions, cover_what_the_tower_sees) {
  for (const Size size : kSizes) {
    const auto prepared = image::prepare_sizes(size, spec_.recipe);
    ASSERT_TRUE(prepared) << prepared.error().message;
    const std::vector<Region> regions = row_regions(spec_, *prepared);
    const Region seen = seen_of(size, *prepared);
    constexpr int kPoints = 40;
    for (int i = 0; i < kPoints * kPoints; ++i) {
      const double x = seen.left + 1.5 + (seen.width - 3) * (i % kPoints) / (kPoints - 1);
      const double y = seen.top + 1.5 + (seen.height - 3) * (i / kPoints) / (kPoints - 1);
      const bool is_covered = std::ranges::any_of(regions, [x, y](const Region& region) {
        return x >= region.left - kRounding && x <= region.left + region.width + kRounding &&
               y >= region.top - kRounding && y <= region.top + region.height + kRounding;
      });
      ASSERT_TRUE(is_covered) << size.width << " x " << size.height << ": " << x << ", " << y;
    }
  }
}

// The rows of one tile do not overlap; those of tiles that are parts of the image do not either.
TEST_P(RowRegions, of_a_detail_are_disjoint) {
  for (const Size size : kSizes) {
    const auto prepared = image::prepare_sizes(size, spec_.recipe);
    ASSERT_TRUE(prepared) << prepared.error().message;
    const std::vector<Region> regions = row_regions(spec_, *prepared);
    double detail = 0.0, whole = 0.0;
    size_t at = 0;
    for (const vision::RowGrid& grid : vision::row_grids(spec_, *prepared)) {
      for (int32_t i = 0; i < grid.n_rows(); ++i, ++at)
        (grid.is_whole ? whole : detail) += regions[at].width * regions[at].height / grid.n_each;
    }
    const double area = static_cast<double>(size.width) * size.height;
    EXPECT_LE(detail, area * (1 + kRounding));
    EXPECT_LE(whole, area * (1 + kRounding));
  }
}

// Sizes alone say the same as pixels.
TEST_P(RowRegions, need_no_pixels) {
  const image::Image pixels = golden_image();
  const auto prepared = image::prepare(pixels, spec_.recipe);
  const auto sizes = image::prepare_sizes({pixels.height, pixels.width}, spec_.recipe);
  ASSERT_TRUE(prepared && sizes);
  EXPECT_EQ(row_regions(spec_, *prepared), row_regions(spec_, *sizes));
  EXPECT_EQ(prepared->n_tile_cols, sizes->n_tile_cols);
  EXPECT_EQ(prepared->whole_tile, sizes->whole_tile);
}

INSTANTIATE_TEST_SUITE_P(all, RowRegions, ::testing::ValuesIn(kVisionGoldens),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace candor::testing
