#include "image/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/rounded_math.h"

namespace candor::image {
namespace {

constexpr int kPlaces = 32 - 8 - 2;  // binary places of a weight: a sum of products with bytes fits 32 bits

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return rounded_sincos(x).sin / x;
}

double lanczos3(double x) {
  return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel kernel_of(Filter filter) {
  if (filter == Filter::kBilinear) return {bilinear, 1.0};
  if (filter == Filter::kBicubic) return {bicubic, 2.0};
  return {lanczos3, 3.0};
}

// The input pixels that an output pixel of one line is made of.
struct Taps {
  int32_t first = 0;
  std::vector<int32_t> weights{};
};

int32_t rounded_weight(double weight) {
  const double scaled = weight * (1 << kPlaces);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

Taps taps_of(const Kernel& kernel, int32_t n_in, double scale, int32_t at) {
  const double filter_scale = std::max(scale, 1.0);
  const double support = kernel.support * filter_scale;
  const double center = (at + 0.5) * scale;
  const double step = 1.0 / filter_scale;
  Taps taps{.first = std::max(static_cast<int32_t>(center - support + 0.5), 0)};
  const int32_t end = std::min(static_cast<int32_t>(center + support + 0.5), n_in);
  std::vector<double> exact;
  double sum = 0;
  for (int32_t i = taps.first; i < end; ++i) {
    exact.push_back(kernel.weight((i - center + 0.5) * step));
    sum += exact.back();
  }
  for (double& weight : exact) {
    if (sum != 0.0) weight /= sum;
    taps.weights.push_back(rounded_weight(weight));
  }
  return taps;
}

std::vector<Taps> taps_of_line(const Kernel& kernel, int32_t n_in, int32_t n_out) {
  const double scale = static_cast<double>(n_in) / n_out;
  std::vector<Taps> line(static_cast<size_t>(n_out));
  for (int32_t at = 0; at < n_out; ++at) line[static_cast<size_t>(at)] = taps_of(kernel, n_in, scale, at);
  return line;
}

uint8_t clipped(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPlaces, 0, 255));
}

constexpr int32_t kHalf = 1 << (kPlaces - 1);

Image resize_rows(const View& image, int32_t width, const Kernel& kernel) {
  const std::vector<Taps> line = taps_of_line(kernel, image.width, width);
  Image out{.width = width, .height = image.height};
  out.rgb.resize(3 * static_cast<size_t>(width) * static_cast<size_t>(image.height));
  uint8_t* to = out.rgb.data();
  for (int32_t y = 0; y < image.height; ++y) {
    const uint8_t* row = image.row(y).data();
    for (const Taps& taps : line) {
      const uint8_t* from = row + 3 * static_cast<size_t>(taps.first);
      int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (const int32_t weight : taps.weights) {
        red += weight * from[0];
        green += weight * from[1];
        blue += weight * from[2];
        from += 3;
      }
      *to++ = clipped(red);
      *to++ = clipped(green);
      *to++ = clipped(blue);
    }
  }
  return out;
}

Image resize_columns(const View& image, int32_t height, const Kernel& kernel) {
  const std::vector<Taps> line = taps_of_line(kernel, image.height, height);
  const size_t n_bytes = 3 * static_cast<size_t>(image.width);
  Image out{.width = image.width, .height = height};
  out.rgb.resize(n_bytes * static_cast<size_t>(height));
  std::vector<int32_t> sums(n_bytes);
  uint8_t* to = out.rgb.data();
  for (const Taps& taps : line) {
    std::ranges::fill(sums, kHalf);
    int32_t y = taps.first;
    for (const int32_t weight : taps.weights) {
      const uint8_t* from = image.row(y++).data();
      for (size_t i = 0; i < n_bytes; ++i) sums[i] += weight * from[i];
    }
    for (size_t i = 0; i < n_bytes; ++i) to[i] = clipped(sums[i]);
    to += n_bytes;
  }
  return out;
}

// The pixel under the centre of each output pixel; the centres are summed up, as Pillow sums them.
std::vector<int32_t> nearest_line(int32_t n_in, int32_t n_out) {
  const double scale = static_cast<double>(n_in) / n_out;
  std::vector<int32_t> line;
  double at = scale * 0.5;
  for (int32_t i = 0; i < n_out; ++i) {
    line.push_back(std::min(static_cast<int32_t>(at), n_in - 1));
    at += scale;
  }
  return line;
}

Image pick_nearest(const View& image, Size size) {
  const std::vector<int32_t> columns = nearest_line(image.width, size.width);
  Image out{.width = size.width, .height = size.height};
  out.rgb.reserve(3 * static_cast<size_t>(size.width) * static_cast<size_t>(size.height));
  for (const int32_t y : nearest_line(image.height, size.height)) {
    const uint8_t* row = image.row(y).data();
    for (const int32_t x : columns) out.rgb.insert(out.rgb.end(), row + 3 * x, row + 3 * x + 3);
  }
  return out;
}

}  // namespace

std::string_view name_of(Filter filter) {
  switch (filter) {
    case Filter::kNearest:
      return "nearest";
    case Filter::kBilinear:
      return "bilinear";
    case Filter::kBicubic:
      return "bicubic";
    case Filter::kLanczos3:
      break;
  }
  return "lanczos";
}

Result<void> check_size(Size size) {
  const bool has_sides = std::min(size.height, size.width) >= 1 && std::max(size.height, size.width) <= kMostSide;
  if (has_sides && int64_t{size.height} * size.width <= kMostPixels) return {};
  return fail(
      ErrorKind::kInvalidInput,
      fmt::format("an image of {} x {} pixels: the sides may be 1 to {} and the pixels {} at most; use another image",
                  size.width, size.height, kMostSide, kMostPixels));
}

Result<void> check(const View& image) {
  CANDOR_TRY(check_size({.height = image.height, .width = image.width}));
  const size_t n_bytes = 3 * static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  if (image.rgb.size() == n_bytes) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("an image of {} x {} pixels has {} bytes, expected {}", image.width,
                                                    image.height, image.rgb.size(), n_bytes));
}

Result<Image> resize(View image, Size size, Filter filter) {
  CANDOR_TRY(check(image));
  CANDOR_TRY(check_size(size));
  if (size == Size{.height = image.height, .width = image.width}) {
    return Image{.width = image.width, .height = image.height, .rgb = {image.rgb.begin(), image.rgb.end()}};
  }
  if (filter == Filter::kNearest) return pick_nearest(image, size);
  const Kernel kernel = kernel_of(filter);
  if (size.width == image.width) return resize_columns(image, size.height, kernel);
  CANDOR_TRY(check_size({.height = image.height, .width = size.width}));
  Image rows = resize_rows(image, size.width, kernel);
  if (size.height == image.height) return rows;
  return resize_columns(rows, size.height, kernel);
}

}  // namespace candor::image
