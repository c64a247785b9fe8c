#include "image/canvas.h"

namespace candor::image {
namespace {

Canvas shown(Image image, const Region& from) {
  Canvas canvas{.width = image.width, .height = image.height, .from = from};
  canvas.owned = std::make_shared<const Image>(std::move(image));
  canvas.pixels = *canvas.owned;
  return canvas;
}

}  // namespace

Canvas Canvas::of(View image) {
  Canvas canvas = of(Size{.height = image.height, .width = image.width});
  canvas.pixels = image;
  return canvas;
}

Canvas Canvas::of(Size image) {
  return {.width = image.width,
          .height = image.height,
          .from = {0.0, 0.0, static_cast<double>(image.width), static_cast<double>(image.height)}};
}

Region part_of(const Canvas& image, const Box& box) {
  const double across = image.from.width / image.width;
  const double down = image.from.height / image.height;
  return {image.from.left + box.left * across, image.from.top + box.top * down, box.width * across, box.height * down};
}

Result<Canvas> resize(const Canvas& image, Size size, Filter filter) {
  CANDOR_TRY(check_size(size));
  if (!image.has_pixels()) {
    CANDOR_TRY(check_size({.height = image.height, .width = size.width}));
    return Canvas{.width = size.width, .height = size.height, .from = image.from};
  }
  CANDOR_ASSIGN(Image resized, resize(image.pixels, size, filter));
  return shown(std::move(resized), image.from);
}

Result<Canvas> crop(const Canvas& image, const Box& box) {
  CANDOR_TRY(check_size({.height = box.height, .width = box.width}));
  const Region from = part_of(image, box);
  if (!image.has_pixels()) return Canvas{.width = box.width, .height = box.height, .from = from};
  CANDOR_ASSIGN(Image part, crop(image.pixels, box));
  return shown(std::move(part), from);
}

Result<Canvas> center_crop(const Canvas& image, Size size) {
  return crop(image, middle_of(image.size(), size));
}

}  // namespace candor::image
