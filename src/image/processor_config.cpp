#include "image/processor_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "formats/json_text.h"
#include "image/processor_keys.h"

namespace candor::image {
namespace {

using nlohmann::json;
using Keys = ProcessorKeys;
using Triple = std::array<double, 3>;

constexpr Triple kClipMean = {0.48145466, 0.4578275, 0.40821073};
constexpr Triple kClipDeviation = {0.26862954, 0.26130258, 0.27577711};
constexpr Triple kHalves = {0.5, 0.5, 0.5};
constexpr Triple kZeros = {0.0, 0.0, 0.0};
constexpr Triple kOnes = {1.0, 1.0, 1.0};
constexpr int64_t kMostTiles = 64;
constexpr int64_t kMostMerge = 16;
constexpr int64_t kMostTokens = 1 << 14;  // of one tile

struct Processor {
  std::string_view name;  // without "ImageProcessor"
  Filter filter;
  Triple mean, deviation;
  Result<Layout> (*read)(const Keys& keys, const TowerSides& tower);
  std::span<const std::string_view> keys;  // its own, besides those of all
  bool is_rounded = false;                 // Normalisation's
  bool does_normalise = true;
};

// All processors have these, and their meaning is the same or nothing.
constexpr std::string_view kCommonKeys[] = {
    "do_resize", "size", "resample", "do_rescale", "rescale_factor", "do_normalize", "image_mean", "image_std",
    "do_center_crop", "crop_size", "do_pad", "patch_size",
    // Names, and what does not change one image's numbers.
    "image_processor_type", "feature_extractor_type", "processor_class", "auto_map", "do_convert_rgb", "data_format",
    "input_data_format", "device", "disable_grouping", "return_tensors", "default_to_square", "image_seq_length",
    "image_seq_len", "model_input_names", "_valid_processor_keys", "use_fast", "backend"};
constexpr std::string_view kTileKeys[] = {"max_image_size", "do_image_splitting", "return_row_col_info",
                                          "video_sampling"};
// Frames of a video: the reader of the weights joins the two halves of the first weight for an image.
constexpr std::string_view kSmartKeys[] = {"min_pixels", "max_pixels", "merge_size", "temporal_patch_size"};
constexpr std::string_view kShapedKeys[] = {"crop_to_patches", "min_patches", "max_patches"};
constexpr std::string_view kSmartTileKeys[] = {"downsample_factor", "do_image_splitting",   "min_tiles",
                                               "max_tiles",         "use_thumbnail",        "min_image_tokens",
                                               "max_image_tokens",  "max_num_patches",      "encoder_patch_size",
                                               "tile_size",         "max_pixels_tolerance", "return_row_col_info"};
constexpr std::string_view kSplitKeys[] = {"do_image_splitting"};
constexpr std::string_view kBudgetKeys[] = {"max_soft_tokens", "pooling_kernel_size"};
constexpr std::string_view kScanKeys[] = {"do_pan_and_scan", "pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops",
                                          "pan_and_scan_min_ratio_to_activate"};

// The second has no effect: the class cuts so always.
constexpr std::string_view kCanvasKeys[] = {"image_grid_pinpoints", "aspect_ratio_setting"};
constexpr std::string_view kFittedKeys[] = {"max_patches", "resize_to_max_canvas"};

constexpr Size square(int32_t side) {
  return {.height = side, .width = side};
}

Result<int32_t> side_of(const Keys& keys, std::string_view key, int64_t length) {
  if (length <= kMostSide) return static_cast<int32_t>(length);
  return keys.unsupported(key, fmt::format("a side of {} is more than {}", length, kMostSide));
}

// A size that does not depend on the image.
Result<Size> fixed_size(const Keys& keys, std::string_view key, Size otherwise, bool is_square) {
  CANDOR_ASSIGN(const auto sides, keys.sides(key, is_square));
  if (!sides) return otherwise;
  if (sides->size && sides->shortest_edge == 0 && sides->longest_edge == 0) return *sides->size;
  return keys.bad(key, *keys.find(key), "height and width");
}

Result<void> refuse_flag(const Keys& keys, std::string_view key) {
  CANDOR_ASSIGN(const bool is_set, keys.flag(key, false));
  if (is_set) return keys.unsupported(key, "true is not supported with this processor");
  return {};
}

// CLIP, LLaVA and SigLIP have the same code under different defaults.
Result<Layout> read_plain(const Keys& keys, Keys::Sides otherwise, bool does_crop) {
  CANDOR_TRY(refuse_flag(keys, "do_pad"));
  CANDOR_ASSIGN(const bool is_square, keys.flag("default_to_square", false));
  CANDOR_ASSIGN(const auto named, keys.sides("size", is_square));
  const Keys::Sides sides = named.value_or(otherwise);
  CANDOR_ASSIGN(does_crop, keys.flag("do_center_crop", does_crop));
  CANDOR_ASSIGN(const Size crop, fixed_size(keys, "crop_size", square(224), true));
  if (sides.size && sides.shortest_edge == 0 && sides.longest_edge == 0) {
    if (!does_crop || crop == *sides.size) return Layout(FixedSize{*sides.size});
    return keys.unsupported("crop_size", "an image of fixed size is not cut further");
  }
  if (sides.size || sides.longest_edge != 0)
    return keys.bad("size", *keys.find("size"), "shortest_edge, or height and width");
  CANDOR_ASSIGN(const int32_t edge, side_of(keys, "size", sides.shortest_edge));
  return Layout(ShortestEdge{.edge = edge, .crop = does_crop ? crop : Size{}});
}

Result<Layout> read_clip(const Keys& keys, const TowerSides&) {
  return read_plain(keys, {.shortest_edge = 224}, true);
}

Result<Layout> read_siglip(const Keys& keys, const TowerSides&) {
  return read_plain(keys, {.size = square(224)}, false);
}

Result<Layout> read_gemma(const Keys& keys, const TowerSides&) {
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  CANDOR_TRY(refuse_flag(keys, "do_pad"));
  CANDOR_ASSIGN(const Size size, fixed_size(keys, "size", square(224), true));
  CANDOR_ASSIGN(const bool does_scan, keys.flag("do_pan_and_scan", false));
  if (!does_scan) return Layout(FixedSize{size});
  const PanAndScan usual;
  CANDOR_ASSIGN(const int64_t min_side, keys.integer("pan_and_scan_min_crop_size", usual.min_crop_side, kMostSide));
  CANDOR_ASSIGN(const int64_t max_crops, keys.integer("pan_and_scan_max_num_crops", usual.max_crops, kMostTiles));
  CANDOR_ASSIGN(const double ratio, keys.positive("pan_and_scan_min_ratio_to_activate", usual.min_ratio));
  return Layout(PanAndScan{size, static_cast<int32_t>(min_side), static_cast<int32_t>(max_crops), ratio});
}

// "do_pad" is for images of one batch.
Result<Layout> read_idefics(const Keys& keys, const TowerSides&) {
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  SquareTiles layout;
  CANDOR_ASSIGN(const auto named, keys.sides("size", false));
  const Keys::Sides sides = named.value_or(Keys::Sides{.longest_edge = 4 * 364});
  CANDOR_ASSIGN(layout.longest_edge, side_of(keys, "size", sides.longest_edge));
  if (sides.size) layout.size = *sides.size;
  if (sides.shortest_edge != 0 || (layout.longest_edge == 0 && !sides.size)) {
    return keys.bad("size", *keys.find("size"), "longest_edge, or height and width");
  }
  CANDOR_ASSIGN(const auto tile, keys.sides("max_image_size", false));
  const Keys::Sides tile_sides = tile.value_or(Keys::Sides{.longest_edge = 364});
  if (tile_sides.longest_edge == 0) return keys.bad("max_image_size", *keys.find("max_image_size"), "longest_edge");
  CANDOR_ASSIGN(layout.tile_side, side_of(keys, "max_image_size", tile_sides.longest_edge));
  CANDOR_ASSIGN(layout.is_split, keys.flag("do_image_splitting", true));
  return Layout(layout);
}

// What the tower has too, or nothing.
Result<int64_t> patch_of(const Keys& keys, const char* key, const TowerSides& tower) {
  CANDOR_ASSIGN(const int64_t patch, keys.integer(key, 16, kMostSide));
  if (patch == tower.patch) return patch;
  return keys.unsupported(key, fmt::format("the vision tower has patches of {}", tower.patch));
}

Result<int64_t> merge_of(const Keys& keys, const char* key, const TowerSides& tower) {
  CANDOR_ASSIGN(const int64_t merge, keys.integer(key, 2, kMostMerge));
  if (merge == tower.merge) return merge;
  return keys.unsupported(key, fmt::format("{}, but the vision tower merges {}", merge, tower.merge));
}

Result<Layout> read_qwen(const Keys& keys, const TowerSides& tower) {
  constexpr int64_t kMostNamed = int64_t{1} << 40;
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  CANDOR_TRY(refuse_flag(keys, "do_pad"));
  SmartSize layout;
  CANDOR_ASSIGN(const auto named, keys.sides("size", false));
  if (named && (named->size || named->shortest_edge == 0 || named->longest_edge == 0)) {
    // Older files hold the two bounds beside an unused "size".
    if (keys.find("min_pixels") == nullptr || keys.find("max_pixels") == nullptr) {
      return keys.bad("size", *keys.find("size"), "shortest_edge and longest_edge, which count pixels");
    }
  } else if (named) {
    layout.min_pixels = named->shortest_edge;
    layout.max_pixels = named->longest_edge;
  }
  CANDOR_ASSIGN(layout.min_pixels, keys.integer("min_pixels", layout.min_pixels, kMostNamed));
  CANDOR_ASSIGN(layout.max_pixels, keys.integer("max_pixels", layout.max_pixels, kMostNamed));
  CANDOR_ASSIGN(const int64_t merge, merge_of(keys, "merge_size", tower));
  layout.merge = static_cast<int32_t>(merge);
  return Layout(layout);
}

// The processor around it gives it patches of the tower's side times the merged ones.
Result<Layout> read_pixtral(const Keys& keys, const TowerSides& tower) {
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  CANDOR_ASSIGN(const auto named, keys.sides("size", true));
  const Keys::Sides sides = named.value_or(Keys::Sides{.longest_edge = 1024});
  LongestEdge layout{.merge = tower.merge};
  CANDOR_ASSIGN(const int32_t edge, side_of(keys, "size", sides.longest_edge));
  layout.bound = edge > 0 ? square(edge) : sides.size.value_or(Size{});
  if (layout.bound == Size{}) return keys.bad("size", *keys.find("size"), "longest_edge, or height and width");
  return Layout(layout);
}

// InternVL's own processor cuts tiles whatever this file says.
Result<Layout> read_got(const Keys& keys, const TowerSides&) {
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  CANDOR_TRY(refuse_flag(keys, "do_pad"));
  CANDOR_ASSIGN(const Size size, fixed_size(keys, "size", square(384), true));
  CANDOR_ASSIGN(const bool is_asked, keys.flag("crop_to_patches", false));
  CANDOR_ASSIGN(const int64_t min_tiles, keys.integer("min_patches", 1, kMostTiles));
  CANDOR_ASSIGN(const int64_t max_tiles, keys.integer("max_patches", 12, kMostTiles));
  if (!is_asked && keys.word("processor_class") != "InternVLProcessor") return Layout(FixedSize{size});
  return Layout(ShapedTiles{size, static_cast<int32_t>(min_tiles), static_cast<int32_t>(max_tiles)});
}

// "size" has no effect, and "do_pad" is for images of one batch.
Result<Layout> read_lfm(const Keys& keys, const TowerSides& tower) {
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  const SmartTiles usual;
  SmartTiles layout;
  CANDOR_ASSIGN(const int64_t patch, patch_of(keys, "encoder_patch_size", tower));
  CANDOR_ASSIGN(const int64_t merge, merge_of(keys, "downsample_factor", tower));
  layout.whole.merge = static_cast<int32_t>(merge);
  CANDOR_ASSIGN(const int64_t least, keys.integer("min_image_tokens", 64, kMostTokens));
  CANDOR_ASSIGN(const int64_t most, keys.integer("max_image_tokens", 256, kMostTokens));
  layout.whole.min_pixels = least * patch * patch * merge * merge;
  layout.whole.max_pixels = most * patch * patch * merge * merge;
  CANDOR_ASSIGN(const int64_t side, keys.integer("tile_size", usual.tile_side, kMostSide));
  if (side % (patch * merge) != 0) {
    return keys.unsupported("tile_size", fmt::format("{} is no multiple of {}", side, patch * merge));
  }
  layout.tile_side = static_cast<int32_t>(side);
  CANDOR_ASSIGN(const int64_t min_tiles, keys.integer("min_tiles", usual.min_tiles, kMostTiles));
  CANDOR_ASSIGN(const int64_t max_tiles, keys.integer("max_tiles", usual.max_tiles, kMostTiles));
  if (min_tiles > max_tiles) return keys.unsupported("min_tiles", "it is more than \"max_tiles\"");
  CANDOR_ASSIGN(layout.tolerance, keys.positive("max_pixels_tolerance", usual.tolerance));
  CANDOR_ASSIGN(const bool has_whole, keys.flag("use_thumbnail", true));
  if (!has_whole) return keys.unsupported("use_thumbnail", "false is not supported");
  CANDOR_ASSIGN(const bool is_split, keys.flag("do_image_splitting", true));
  layout.min_tiles = is_split ? static_cast<int32_t>(min_tiles) : 1;
  layout.max_tiles = is_split ? static_cast<int32_t>(max_tiles) : 1;
  return Layout(layout);
}

// "size" has no effect, and padding is for images of one batch.
Result<Layout> read_gemma4(const Keys& keys, const TowerSides& tower) {
  constexpr int64_t kBudgets[] = {70, 140, 280, 560, 1120};
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  CANDOR_TRY(patch_of(keys, "patch_size", tower));
  CANDOR_ASSIGN(const int64_t merge, keys.integer("pooling_kernel_size", 3, kMostMerge));
  if (merge != tower.merge) {
    return keys.unsupported("pooling_kernel_size", fmt::format("{}, but the vision tower's is {}", merge, tower.merge));
  }
  CANDOR_ASSIGN(const int64_t budget, keys.integer("max_soft_tokens", 280, kMostTokens));
  if (std::ranges::find(kBudgets, budget) == std::end(kBudgets)) {
    return keys.bad("max_soft_tokens", *keys.find("max_soft_tokens"), "70, 140, 280, 560 or 1120");
  }
  return Layout(TokenBudget{static_cast<int32_t>(budget), static_cast<int32_t>(merge)});
}

// "do_pad" is for images of one batch.
Result<Layout> read_idefics2(const Keys& keys, const TowerSides&) {
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  CANDOR_ASSIGN(const auto named, keys.sides("size", false));
  const Keys::Sides sides = named.value_or(Keys::Sides{.shortest_edge = 378, .longest_edge = 980});
  if (sides.size || sides.shortest_edge == 0 || sides.longest_edge == 0) {
    return keys.bad("size", *keys.find("size"), "shortest_edge and longest_edge");
  }
  BoundedEdges layout;
  CANDOR_ASSIGN(layout.shortest_edge, side_of(keys, "size", sides.shortest_edge));
  CANDOR_ASSIGN(layout.longest_edge, side_of(keys, "size", sides.longest_edge));
  CANDOR_ASSIGN(layout.is_split, keys.flag("do_image_splitting", false));
  return Layout(layout);
}

// "do_pad" has no effect.
Result<Layout> read_llama(const Keys& keys, const TowerSides&) {
  CANDOR_TRY(refuse_flag(keys, "do_center_crop"));
  FittedTiles layout;
  CANDOR_ASSIGN(const Size size, fixed_size(keys, "size", square(layout.tile_side), true));
  if (size.height != size.width) return keys.bad("size", *keys.find("size"), "two equal sides");
  layout.tile_side = size.height;
  CANDOR_ASSIGN(const int64_t max_tiles, keys.integer("max_patches", layout.max_tiles, kMostTiles));
  layout.max_tiles = static_cast<int32_t>(max_tiles);
  CANDOR_ASSIGN(layout.is_largest, keys.flag("resize_to_max_canvas", false));
  return Layout(layout);
}

// "do_pad" is for images of one batch.
Result<Layout> read_llava_next(const Keys& keys, const TowerSides&) {
  CANDOR_ASSIGN(const auto named, keys.sides("size", false));
  const Keys::Sides sides = named.value_or(Keys::Sides{.shortest_edge = 224});
  CANDOR_ASSIGN(const int32_t edge, side_of(keys, "size", sides.shortest_edge));
  const Size size = sides.size.value_or(square(edge));
  if (sides.longest_edge != 0 || size.height != size.width || size.height < 1) {
    return keys.bad("size", *keys.find("size"), "shortest_edge, or two equal sides");
  }
  CANDOR_ASSIGN(const bool does_crop, keys.flag("do_center_crop", true));
  CANDOR_ASSIGN(const Size crop, fixed_size(keys, "crop_size", square(224), true));
  if (does_crop && crop != size) return keys.unsupported("crop_size", "tiles are not cut further: expected \"size\"");
  CanvasTiles layout{.tile_side = size.height};
  CANDOR_ASSIGN(layout.canvases, keys.sizes("image_grid_pinpoints"));
  if (layout.canvases.empty()) {
    layout.canvases = {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  }
  for (const Size canvas : layout.canvases) {
    if (canvas.height % size.height == 0 && canvas.width % size.width == 0) continue;
    return keys.unsupported("image_grid_pinpoints", fmt::format("{} x {} is no multiple of {} x {}", canvas.height,
                                                                canvas.width, size.height, size.width));
  }
  return Layout(layout);
}

constexpr Processor kProcessors[] = {
    {"CLIP", Filter::kBicubic, kClipMean, kClipDeviation, read_clip, {}},
    {"Llava", Filter::kBicubic, kClipMean, kClipDeviation, read_clip, {}},
    {"Siglip", Filter::kBicubic, kHalves, kHalves, read_siglip, {}},
    {"Gemma3", Filter::kBilinear, kHalves, kHalves, read_gemma, kScanKeys},
    {"Gemma4", Filter::kBicubic, kZeros, kOnes, read_gemma4, kBudgetKeys, false},
    {"Gemma4Unified", Filter::kBicubic, kZeros, kOnes, read_gemma4, kBudgetKeys, false},
    {"Idefics2", Filter::kBilinear, kHalves, kHalves, read_idefics2, kSplitKeys},
    {"Idefics3", Filter::kLanczos3, kHalves, kHalves, read_idefics, kTileKeys},
    {"SmolVLM", Filter::kLanczos3, kHalves, kHalves, read_idefics, kTileKeys},
    {"Qwen2VL", Filter::kBicubic, kClipMean, kClipDeviation, read_qwen, kSmartKeys},
    {"Pixtral", Filter::kBicubic, kClipMean, kClipDeviation, read_pixtral, {}},
    {"Lfm2Vl", Filter::kBilinear, kHalves, kHalves, read_lfm, kSmartTileKeys},
    {"GotOcr2", Filter::kBicubic, kClipMean, kClipDeviation, read_got, kShapedKeys},
    {"LlavaNext", Filter::kBicubic, kClipMean, kClipDeviation, read_llava_next, kCanvasKeys},
    {"Llama4", Filter::kBilinear, kHalves, kHalves, read_llama, kFittedKeys, true},
};

std::string known_names() {
  std::string names;
  for (const Processor& each : kProcessors) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
  return names;
}

Result<const Processor*> find_processor(const Keys& keys) {
  std::string name = keys.word("image_processor_type");
  if (name.empty()) name = keys.word("feature_extractor_type");
  std::string_view kind = name;
  for (const std::string_view end : {"Fast", "Pil", "ImageProcessor", "FeatureExtractor"}) {
    if (kind.ends_with(end)) kind.remove_suffix(end.size());
  }
  const auto row = std::ranges::find(kProcessors, kind, &Processor::name);
  if (row != std::end(kProcessors)) return &*row;
  const std::string seen =
      name.empty() ? "names no image processor" : fmt::format("names the image processor '{:.60}'", name);
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("'preprocessor_config.json' {}; known are {} (each with ...ImageProcessor)", seen, known_names()));
}

Result<void> check_keys(const json& object, const Processor& processor) {
  for (const auto& [key, value] : object.items()) {
    const bool is_known = std::ranges::find(kCommonKeys, key) != std::end(kCommonKeys) ||
                          std::ranges::find(processor.keys, key) != processor.keys.end();
    if (is_known || value.is_null()) continue;
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("'preprocessor_config.json': the key '{:.60}' is not known for {}ImageProcessor; remove it if "
                    "it has no effect",
                    key, processor.name));
  }
  return {};
}

Result<Normalisation> read_normalisation(const Keys& keys, const Processor& processor) {
  Normalisation how;
  CANDOR_ASSIGN(how.does_rescale, keys.flag("do_rescale", true));
  CANDOR_ASSIGN(how.does_normalise, keys.flag("do_normalize", processor.does_normalise));
  CANDOR_ASSIGN(how.rescale_factor, keys.positive("rescale_factor", 1.0 / 255));
  CANDOR_ASSIGN(how.mean, keys.triple("image_mean", processor.mean));
  CANDOR_ASSIGN(how.deviation, keys.triple("image_std", processor.deviation));
  for (const double deviation : how.deviation) {
    if (deviation < 1e-6) return keys.bad("image_std", *keys.find("image_std"), "three numbers above 0");
  }
  return how;
}

Result<void> check_patch(const Keys& keys, const TowerSides& tower) {
  CANDOR_ASSIGN(const auto sides, keys.sides("patch_size", true));
  if (!sides || sides->size == square(tower.patch)) return {};
  return keys.unsupported("patch_size", fmt::format("the vision tower has patches of {}", tower.patch));
}

Result<Recipe> read_recipe(const json& object, const TowerSides& tower) {
  const Keys keys(object);
  CANDOR_ASSIGN(const Processor* processor, find_processor(keys));
  CANDOR_TRY(check_keys(object, *processor));
  CANDOR_TRY(check_patch(keys, tower));
  CANDOR_ASSIGN(const bool does_resize, keys.flag("do_resize", true));
  if (!does_resize) return keys.unsupported("do_resize", "false is not supported");
  Recipe recipe{.patch_side = tower.patch};
  CANDOR_ASSIGN(recipe.layout, processor->read(keys, tower));
  CANDOR_ASSIGN(recipe.filter, keys.filter(processor->filter));
  CANDOR_ASSIGN(recipe.normalisation, read_normalisation(keys, *processor));
  recipe.normalisation.is_rounded =
      processor->is_rounded && recipe.normalisation.does_rescale && recipe.normalisation.does_normalise;
  return recipe;
}

}  // namespace

Result<Recipe> recipe_of(std::string_view text, const TowerSides& tower) {
  if (tower.patch < 1 || tower.patch > kMostSide || tower.merge < 1 || tower.merge > kMostMerge) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("a vision tower with patches of {} pixels, {} merged: expected 1 to {} and 1 to {}",
                            tower.patch, tower.merge, kMostSide, kMostMerge));
  }
  CANDOR_ASSIGN(const json whole, formats::parse_json(text, "'preprocessor_config.json'"));
  if (!whole.is_object())
    return fail(ErrorKind::kInvalidInput, "'preprocessor_config.json' is no object; download it again");
  const auto inner = whole.find("image_processor");
  return read_recipe(inner != whole.end() && inner->is_object() ? *inner : whole, tower);
}

}  // namespace candor::image
