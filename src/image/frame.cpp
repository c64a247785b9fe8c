#include "image/frame.h"

#include <algorithm>

#include "image/resize.h"

namespace candor::image {
namespace {

// Where the middle of `length` pixels begins; negative where they are too few.
int32_t middle(int32_t length, int32_t wanted) {
  return length >= wanted ? (length - wanted) / 2 : -((wanted - length) / 2);
}

void fill(Image& image, Colour colour) {
  for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = colour[i % 3];
}

}  // namespace

Result<Image> crop(View image, const Box& box, Colour outside) {
  CANDOR_TRY(check(image));
  CANDOR_TRY(check_size({.height = box.height, .width = box.width}));
  Image out{.width = box.width, .height = box.height};
  out.rgb.resize(3 * static_cast<size_t>(box.width) * static_cast<size_t>(box.height));
  const int64_t right = std::min(int64_t{box.left} + box.width, int64_t{image.width});
  const int64_t bottom = std::min(int64_t{box.top} + box.height, int64_t{image.height});
  const int32_t left = std::max(box.left, 0);
  const int32_t top = std::max(box.top, 0);
  if (left != box.left || top != box.top || right - left != box.width || bottom - top != box.height) fill(out, outside);
  if (right <= left) return out;
  const auto n_bytes = 3 * static_cast<size_t>(right - left);
  for (int32_t y = top; y < bottom; ++y) {
    const auto from = image.row(y).subspan(3 * static_cast<size_t>(left), n_bytes);
    const size_t at =
        static_cast<size_t>(y - box.top) * static_cast<size_t>(box.width) + static_cast<size_t>(left - box.left);
    std::ranges::copy(from, out.rgb.begin() + static_cast<ptrdiff_t>(3 * at));
  }
  return out;
}

Box middle_of(Size image, Size wanted) {
  return {.left = middle(image.width, wanted.width),
          .top = middle(image.height, wanted.height),
          .width = wanted.width,
          .height = wanted.height};
}

Result<Image> center_crop(View image, Size size) {
  return crop(image, middle_of({.height = image.height, .width = image.width}, size));
}

Result<Image> pad(View image, Size size, Colour colour) {
  CANDOR_CHECK(size.width >= image.width && size.height >= image.height);
  return crop(image, {.width = size.width, .height = size.height}, colour);
}

}  // namespace candor::image
