#include "image/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "image/frame.h"
#include "image/image_test_support.h"

namespace candor::image {
namespace {

Filter filter_of(const std::string& name) {
  for (const Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos3}) {
    if (name == name_of(filter)) return filter;
  }
  ADD_FAILURE() << name;
  return {};
}

std::vector<uint8_t> rows(std::initializer_list<int> values) {
  std::vector<uint8_t> rgb;
  for (const int v : values) rgb.insert(rgb.end(), 3, static_cast<uint8_t>(v));
  return rgb;
}

TEST(resize, every_filter_gives_the_bytes_of_pillow) {
  std::ifstream file = golden("resized.txt");
  int n_cases = 0;
  int32_t width = 0, height = 0;
  Size size;
  for (std::string name, hash; file >> width >> height >> size.width >> size.height >> name >> hash; ++n_cases) {
    const auto resized = resize(picture(width, height), size, filter_of(name));
    ASSERT_TRUE(resized) << resized.error().message;
    EXPECT_EQ(half_hash(std::as_bytes(std::span(resized->rgb))), hash)
        << width << " x " << height << " to " << size.width << " x " << size.height << " " << name;
  }
  EXPECT_EQ(n_cases, 44);
}

TEST(resize, sides_and_pixels_beyond_the_bounds_are_refused_before_memory_is_taken) {
  const Image line = picture(1, 30'000);
  EXPECT_TRUE(resize(line, {.height = 4, .width = 2}, Filter::kLanczos3));
  EXPECT_TRUE(resize(picture(30'000, 1), {.height = 2, .width = 4}, Filter::kBicubic));
  for (const Size size : {Size{1, 30'000}, Size{0, 1}, Size{1, -1}, Size{30'000, 30'000}, Size{1, 70'000}}) {
    const auto refused = resize(line, size, Filter::kBicubic);
    ASSERT_FALSE(refused) << size.height << " x " << size.width;
    EXPECT_EQ(refused.error().kind, ErrorKind::kInvalidInput);
  }
  const Image broken{.width = 2, .height = 2, .rgb = std::vector<uint8_t>(11)};
  EXPECT_EQ(resize(broken, {1, 1}, Filter::kBilinear).error().message,
            "an image of 2 x 2 pixels has 11 bytes, expected 12");
}

TEST(frame, a_crop_that_leaves_the_image_is_padded_with_a_colour) {
  const Image image{.width = 2, .height = 2, .rgb = rows({1, 2, 3, 4})};
  EXPECT_EQ(crop(image, {.left = 1, .top = 0, .width = 1, .height = 2})->rgb, rows({2, 4}));
  EXPECT_EQ(crop(image, {.left = -1, .top = 1, .width = 2, .height = 2}, {9, 9, 9})->rgb, rows({9, 3, 9, 9}));
  EXPECT_EQ(crop(image, {.left = 5, .top = 5, .width = 1, .height = 1}, {9, 9, 9})->rgb, rows({9}));
  EXPECT_EQ(pad(image, {.height = 3, .width = 2}, {7, 7, 7})->rgb, rows({1, 2, 3, 4, 7, 7}));
  EXPECT_FALSE(crop(image, {.width = 0, .height = 1}));
}

TEST(frame, the_middle_is_cut_and_padded_where_torchvision_does) {
  const Image image{.width = 3, .height = 1, .rgb = rows({1, 2, 3})};
  EXPECT_EQ(center_crop(image, {.height = 1, .width = 1})->rgb, rows({2}));
  EXPECT_EQ(center_crop(image, {.height = 1, .width = 2})->rgb, rows({1, 2}));
  EXPECT_EQ(center_crop(image, {.height = 2, .width = 3})->rgb, rows({1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(center_crop(image, {.height = 1, .width = 6})->rgb, rows({0, 1, 2, 3, 0, 0}));
}

}  // namespace
}  // namespace candor::image
