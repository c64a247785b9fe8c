#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/error.h"
#include "sandbox/helper_pool.h"
#include "support/shared_data.h"

namespace candor::sandbox {
namespace {

std::string bytes_of(const std::string& name) {
  std::ifstream file(testing::project_file("tests/image/files/" + name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hash_of(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

// "WIDTH HEIGHT HASH", or "! " and the message.
std::string outcome(HelperPool& pool, const std::string& file) {
  const auto image = pool.decode_image(file);
  if (!image) return "! " + image.error().message;
  return std::to_string(image->width) + " " + std::to_string(image->height) + " " + hash_of(image->rgb());
}

TEST(decode_image, every_file_gives_the_pixels_of_pillow_or_one_line_that_says_why_not) {
  HelperPool pool;
  std::ifstream list(testing::project_file("tests/image/decoded.txt"));
  int n_files = 0;
  for (std::string name, expected; list >> name && std::getline(list >> std::ws, expected); ++n_files) {
    const std::string got = outcome(pool, bytes_of(name));
    if (expected.starts_with("! ")) {
      EXPECT_TRUE(got.starts_with("! ") && got.find(expected.substr(2)) != got.npos) << name << ": " << got;
      EXPECT_EQ(got.find('\n'), got.npos);
    } else {
      EXPECT_EQ(got, expected) << name;
    }
  }
  EXPECT_GT(n_files, 80);
}

TEST(decode_image, a_file_cut_at_any_byte_is_an_image_or_an_error_of_the_input) {
  HelperPool pool;
  for (const char* name : {"jpeg_progressive.jpg", "png_2_16.png", "gif_interlaced.gif", "webp_lossless_alpha.webp",
                           "webp_lossy.webp", "bmp_rle8.bmp"}) {
    const std::string file = bytes_of(name);
    for (size_t n = 0; n < file.size(); ++n) {
      const auto image = pool.decode_image(std::string_view(file).substr(0, n));
      if (image) continue;
      EXPECT_EQ(image.error().kind, ErrorKind::kInvalidInput) << name << " " << n << image.error().message;
    }
  }
}

TEST(decode_image, the_largest_image_fits_the_bounds_of_a_job) {
  HelperPool pool;
  // 8192 x 8192 pixels in runs of 255: one byte more would be one pixel too many.
  constexpr uint32_t kSide = 8192;
  std::string file("BM", 2);
  const auto add = [&](uint32_t number, int n_bytes) {
    for (int i = 0; i < n_bytes; ++i) file += static_cast<char>(number >> (8 * i) & 0xff);
  };
  for (const uint32_t number : {0u, 0u, 54u, 40u, kSide, kSide}) add(number, 4);
  add(1, 2);
  add(8, 2);
  for (const uint32_t number : {1u, 0u, 0u, 0u, 0u, 0u}) add(number, 4);
  file += std::string("\0\1", 2);
  const auto image = pool.decode_image(file);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->rgb().size(), size_t{3} * kSide * kSide);
  file[22] = 1;  // the height: 8193
  const auto larger = pool.decode_image(file);
  ASSERT_FALSE(larger);
  EXPECT_NE(larger.error().message.find("8192 x 8193 pixels"), std::string::npos) << larger.error().message;
  EXPECT_EQ(pool.decode_image(bytes_of("png_one_pixel.png"))->width, 1);
}

TEST(decode_image, a_file_of_more_than_a_request_is_refused_before_it_is_sent) {
  HelperPool pool;
  const auto image = pool.decode_image(std::string((size_t{80} << 20) + 1, 'x'));
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().message.find("has 83886081 bytes, at most 83886080"), std::string::npos);
}

}  // namespace
}  // namespace candor::sandbox
