#pragma once
// The image of tests/image/make_golden.py, and lines of its files. Used by tests alone.

#include <fstream>
#include <span>
#include <string>

#include "base/sha256.h"
#include "image/image.h"
#include "support/shared_data.h"

namespace candor::image {

inline Image picture(int32_t width, int32_t height) {
  Image image{.width = width, .height = height};
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      for (int32_t c = 0; c < 3; ++c) {
        image.rgb.push_back(static_cast<uint8_t>((x * 37 + y * 101 + c * 53) ^ (x * y * 7 >> 3)));
      }
    }
  }
  return image;
}

inline std::string half_hash(std::span<const std::byte> bytes) {
  return to_hex(sha256(bytes)).substr(0, 32);
}

inline std::ifstream golden(const std::string& name) {
  return std::ifstream(testing::project_file("tests/image/" + name));
}

}  // namespace candor::image
