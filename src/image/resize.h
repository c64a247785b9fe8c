#pragma once
// Resizing bit for bit as Pillow's Image.resize does on RGB of 8 bits (src/libImaging/Resample.c, up to version 12): a
// horizontal pass, then a vertical one. The weights of an output pixel are doubles, whose sum is taken in order of
// their pixels, divided by it, and rounded to integers of 22 binary places; each pass sums integers, rounds and clips
// to 8 bits. The filters widen where an image becomes smaller (antialiasing). torchvision's resize of 8 bits has the
// same passes with coarser weights: it differs by 1 level, by 2 in some values of 100 000. Pillow 13 takes the vertical
// pass first where the height shrinks more than the width, which torchvision does not. Pure: the same bits with every
// thread and machine. Any thread.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "image/image.h"

namespace candor::image {

enum class Filter : uint8_t { kNearest, kBilinear, kBicubic, kLanczos3 };

std::string_view name_of(Filter filter);

// kInvalidInput where `image`, the result, or the image between the passes (the new width, the old height) has more
// than kMostPixels, or a side is 0 or more than kMostSide. An image that has the size already is copied.
Result<Image> resize(View image, Size size, Filter filter);

// An error that names the sides, where they are none of an image.
Result<void> check_size(Size size);
// ... or where the bytes are not as many as the sides say.
Result<void> check(const View& image);

}  // namespace candor::image
