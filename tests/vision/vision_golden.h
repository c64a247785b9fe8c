#pragma once
// The goldens of models that take images (make_goldens.py).

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "image/image.h"
#include "support/shared_data.h"

namespace candor::testing {

inline constexpr const char* kVisionGoldens[] = {
    "smolvlm",     "gemma3",        "gemma4",  "gemma4_wide", "llava",      "internvl",      "internvl_rms",
    "lfm2_vl",     "lfm2_vl_tiles", "qwen3vl", "qwen3_5",     "qwen2_5_vl", "pixtral",       "mistral3",
    "qwen3vl_moe", "idefics2",      "llama4",  "qwen2_vl",    "llava_next", "gemma4_unified"};

inline std::filesystem::path vision_golden(const std::string& name) {
  return goldens().parent_path() / "vision_goldens" / name;
}

// As make_goldens.py makes it: odd sides.
inline image::Image golden_image() {
  image::Image made{50, 37, {}};
  for (int32_t y = 0; y < made.height; ++y) {
    for (int32_t x = 0; x < made.width; ++x) {
      const int32_t rgb[] = {(x * 5 + y) % 256, (y * 6 + x * x / 20) % 256, (x > y ? 200 : 40) + x % 7};
      for (const int32_t value : rgb) made.rgb.push_back(static_cast<uint8_t>(value));
    }
  }
  return made;
}

inline std::vector<float> read_floats(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_FALSE(bytes.empty()) << path;
  std::vector<float> floats(bytes.size() / sizeof(float));
  bytes.copy(reinterpret_cast<char*>(floats.data()), floats.size() * sizeof(float));
  return floats;
}

inline nlohmann::json expected_of(const std::string& name) {
  return nlohmann::json::parse(std::ifstream(vision_golden(name) / "expected.json"));
}

}  // namespace candor::testing
