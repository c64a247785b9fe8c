#pragma once
// Parts of images and images with a border. Any thread.

#include <array>
#include <cstdint>

#include "base/error.h"
#include "image/image.h"

namespace candor::image {

using Colour = std::array<uint8_t, 3>;

struct Box {
  int32_t left = 0;
  int32_t top = 0;
  int32_t width = 0;
  int32_t height = 0;
};

// Pixels outside the image have the colour `outside`: a box that begins before the image pads it.
Result<Image> crop(View image, const Box& box, Colour outside = {});

// Where the middle of an image lies: before its first pixel where it is smaller.
Box middle_of(Size image, Size wanted);

// The middle, as torchvision cuts it: where the image is smaller, black is added, the odd row and column behind it.
// What is left over when a difference is odd is cut at the end.
Result<Image> center_crop(View image, Size size);

// Adds pixels at the right and at the bottom. REQUIRES: size is not smaller than the image.
Result<Image> pad(View image, Size size, Colour colour = {});

}  // namespace candor::image
