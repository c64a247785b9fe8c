#pragma once
// An image on its way through a recipe: its pixels, or its size alone, and which part of the image that was given it
// shows. Without pixels the same steps cost nothing. Any thread.

#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"
#include "image/frame.h"
#include "image/image.h"
#include "image/resize.h"

namespace candor::image {

struct Canvas {
  int32_t width = 0;
  int32_t height = 0;
  Region from{};
  View pixels{};                         // empty where there is only a size
  std::shared_ptr<const Image> owned{};  // whose pixels they are; nullptr: the caller's

  // The whole of an image; the pixels are borrowed.
  static Canvas of(View image);
  static Canvas of(Size image);

  Size size() const { return {.height = height, .width = width}; }
  bool has_pixels() const { return !pixels.rgb.empty(); }
};

// As of an image (resize.h, frame.h), with the same errors.
Result<Canvas> resize(const Canvas& image, Size size, Filter filter);
Result<Canvas> crop(const Canvas& image, const Box& box);
Result<Canvas> center_crop(const Canvas& image, Size size);

// What part of the given image these of its pixels show.
Region part_of(const Canvas& image, const Box& box);

}  // namespace candor::image
