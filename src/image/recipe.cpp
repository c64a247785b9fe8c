#include "image/recipe.h"

#include <fmt/format.h>

namespace candor::image {
namespace {

std::string words(Size size) {
  return fmt::format("{} x {}", size.width, size.height);
}

std::string words(const FixedSize& layout) {
  return "resized to " + words(layout.size);
}

std::string words(const PanAndScan& layout) {
  return fmt::format("resized to {}, with up to {} crops of at least {} pixels from a ratio of {}", words(layout.size),
                     layout.max_crops, layout.min_crop_side, layout.min_ratio);
}

std::string words(const ShortestEdge& layout) {
  const bool has_crop = layout.crop != Size{};
  return fmt::format("short side {}{}", layout.edge, has_crop ? ", the middle " + words(layout.crop) : "");
}

std::string words(const SquareTiles& layout) {
  const std::string first =
      layout.longest_edge > 0 ? fmt::format("long side {}", layout.longest_edge) : "resized to " + words(layout.size);
  return fmt::format("{}, {} of {} x {}", first, layout.is_split ? "tiles and the whole" : "one tile", layout.tile_side,
                     layout.tile_side);
}

std::string words(const SmartSize& layout) {
  return fmt::format("{} to {} pixels, {} x {} patches merged", layout.min_pixels, layout.max_pixels, layout.merge,
                     layout.merge);
}

std::string words(const LongestEdge& layout) {
  return fmt::format("at most {}, {} x {} patches merged", words(layout.bound), layout.merge, layout.merge);
}

std::string words(const ShapedTiles& layout) {
  return fmt::format("{} to {} tiles of {} and the whole", layout.min_tiles, layout.max_tiles, words(layout.tile));
}

std::string words(const SmartTiles& layout) {
  return fmt::format("{}; from {} times the most on {} to {} tiles of {} and the whole", words(layout.whole),
                     layout.tolerance, layout.min_tiles, layout.max_tiles,
                     words(Size{layout.tile_side, layout.tile_side}));
}

std::string words(const TokenBudget& layout) {
  return fmt::format("at most {} tokens, {} x {} patches merged", layout.max_tokens, layout.merge, layout.merge);
}

std::string words(const BoundedEdges& layout) {
  return fmt::format("sides of {} to {}{}", layout.shortest_edge, layout.longest_edge,
                     layout.is_split ? ", four quarters and the whole" : "");
}

std::string words(const FittedTiles& layout) {
  return fmt::format("{} to {} tiles of {}, padded, and the whole", layout.is_largest ? "the most of 1" : "1",
                     layout.max_tiles, words(Size{layout.tile_side, layout.tile_side}));
}

std::string words(const CanvasTiles& layout) {
  std::string canvases;
  for (const Size canvas : layout.canvases) canvases += (canvases.empty() ? "" : ", ") + words(canvas);
  return fmt::format("tiles of {} on one of {}, padded, and the whole", words(Size{layout.tile_side, layout.tile_side}),
                     canvases);
}

std::string words(const Normalisation& normalisation) {
  const auto& [mean_r, mean_g, mean_b] = normalisation.mean;
  const auto& [dev_r, dev_g, dev_b] = normalisation.deviation;
  std::string text = normalisation.does_rescale ? fmt::format("times {}", normalisation.rescale_factor) : "as bytes";
  if (!normalisation.does_normalise) return text;
  return text + fmt::format(", mean {} {} {}, deviation {} {} {}{}", mean_r, mean_g, mean_b, dev_r, dev_g, dev_b,
                            normalisation.is_rounded ? ", in bf16" : "");
}

}  // namespace

std::string describe(const Recipe& recipe) {
  const std::string layout = std::visit([](const auto& each) { return words(each); }, recipe.layout);
  return fmt::format("{}; {}; patches of {}; {}", layout, name_of(recipe.filter), recipe.patch_side,
                     words(recipe.normalisation));
}

}  // namespace candor::image
