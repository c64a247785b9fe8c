#pragma once
// Pixels: RGB of 8 bits, row by row from the top, without gaps. Plain data; any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace candor::image {

// The most pixels that an image may have here, whether decoded, between two passes or resized: 192 MiB.
inline constexpr int64_t kMostPixels = int64_t{64} << 20;
inline constexpr int32_t kMostSide = 65'535;

struct Image {
  int32_t width = 0;
  int32_t height = 0;
  std::vector<uint8_t> rgb{};  // [height, width, 3]

  bool operator==(const Image&) const = default;
};

// Pixels that another object owns, such as the reply of a helper. REQUIRES of all functions that take one: sides of 1
// to kMostSide, at most kMostPixels, and as many bytes as the sides say; check() tells.
struct View {
  int32_t width = 0;
  int32_t height = 0;
  std::span<const uint8_t> rgb{};

  View() = default;
  View(int32_t w, int32_t h, std::span<const uint8_t> bytes) : width(w), height(h), rgb(bytes) {}
  View(const Image& image) : width(image.width), height(image.height), rgb(image.rgb) {}

  // The 3 * width bytes of a row.
  std::span<const uint8_t> row(int32_t y) const {
    const size_t n_bytes = 3 * static_cast<size_t>(width);
    return rgb.subspan(static_cast<size_t>(y) * n_bytes, n_bytes);
  }
};

// Height before width, as image processors say it.
struct Size {
  int32_t height = 0;
  int32_t width = 0;

  bool operator==(const Size&) const = default;
};

// A part of an image, in its pixels; borders may lie between two of them, and outside of the image.
struct Region {
  double left = 0.0;
  double top = 0.0;
  double width = 0.0;
  double height = 0.0;

  bool operator==(const Region&) const = default;
};

}  // namespace candor::image
