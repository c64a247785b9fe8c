#include "apps/estimate/subject_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/options/image_files.h"
#include "platform/float_mode.h"
#include "sandbox/helper_pool.h"
#include "tensor/dtype.h"

namespace candor::apps {
namespace {

// "640x480"; nullopt: it is a file's name.
std::optional<image::Size> size_of(std::string_view text) {
  image::Size size;
  const char* end = text.data() + text.size();
  const auto [middle, first] = std::from_chars(text.data(), end, size.width);
  if (first != std::errc() || middle == end || *middle != 'x') return std::nullopt;
  const auto [last, second] = std::from_chars(middle + 1, end, size.height);
  if (second != std::errc() || last != end) return std::nullopt;
  return size;
}

Result<image::Size> read_size(const std::string& text) {
  if (const auto size = size_of(text)) return *size;
  CANDOR_ASSIGN(const std::string file, read_image_file(text));
  sandbox::HelperPool helpers;
  auto decoded = helpers.decode_image(file);
  if (!decoded) {
    return fail(decoded.error().kind, fmt::format("--image '{}': {}", text, decoded.error().message));
  }
  return image::Size{.height = decoded->height, .width = decoded->width};
}

Arithmetic arithmetic_of_most(const formats::ModelFile& file) {
  std::array<double, std::size(kArithmetics)> elements{};
  for (const TensorView& tensor : file.tensors()) {
    if (tensor.shape.n_dims < 2) continue;
    elements[static_cast<size_t>(arithmetic_of(tensor.dtype))] += static_cast<double>(tensor.shape.n_elements());
  }
  return *std::ranges::max_element(kArithmetics, {},
                                   [&](Arithmetic each) { return elements[static_cast<size_t>(each)]; });
}

}  // namespace

Result<SubjectImage> choose_image(const EstimateOptions& options, const Subject& subject) {
  if (subject.file.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "--image is read by a model's tower: give the model's file instead of --parameters or --like");
  }
  CANDOR_ASSIGN(const image::Size size, read_size(*options.image));
  const EngineOptions opened{.model_path = subject.file, .mmproj_path = options.mmproj.value_or("")};
  CANDOR_ASSIGN(auto vision, engine::open_vision(opened, subject.spec));
  if (vision == nullptr) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("--image: {} is a text model, it takes no images: leave it out, or name the part that reads "
                    "images by --mmproj",
                    subject.name));
  }
  SubjectImage image{.vision = std::move(vision)};
  auto prepared = image::prepare_sizes(size, image.vision->spec.recipe);
  if (!prepared) return fail(prepared.error().kind, "--image: " + prepared.error().message);
  image.prepared = std::move(*prepared);
  for (const TensorView& tensor : image.vision->file->tensors()) {
    image.parameters += static_cast<double>(tensor.shape.n_elements());
    image.weight_bytes += static_cast<double>(tensor.n_bytes);
  }
  image.arithmetic = arithmetic_of_most(*image.vision->file);
  image.cost = vision::cost_of(image.vision->spec, image.weight_bytes, image.prepared);
  return image;
}

Result<double> measured_encode_ms(const SubjectImage& image) {
  constexpr size_t kRuns = 3;
  const platform::ScopedFloatMode float_mode;
  const image::Size size = image.prepared.original;
  image::Image black{.width = size.width, .height = size.height, .rgb = {}};
  black.rgb.resize(3 * static_cast<size_t>(size.width) * static_cast<size_t>(size.height));
  CANDOR_ASSIGN(const image::Prepared prepared, image::prepare(black, image.vision->spec.recipe));
  CANDOR_ASSIGN(const auto encoder, engine::load_encoder(*image.vision));
  std::vector<double> runs;
  for (size_t run = 0; run <= kRuns; ++run) {
    vision::EncodedImage encoded;
    const auto began = std::chrono::steady_clock::now();
    for (const image::Tile& tile : prepared.tiles) CANDOR_TRY(encoder->encode(tile, encoded));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    if (run > 0) runs.push_back(took.count());  // the first warms up
  }
  std::ranges::sort(runs);
  return runs[runs.size() / 2];
}

}  // namespace candor::apps
