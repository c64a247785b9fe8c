#pragma once
// What an image processor does, as data: how an image becomes one or several tiles of a size that the vision tower
// reads, how their bytes become numbers, and the side of a patch. processor_config.h reads it from a model's files,
// prepare.h obeys it. Plain values that can be compared; any thread.

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "image/image.h"
#include "image/resize.h"

namespace candor::image {

// To one size, whatever the shape (SigLIP, Gemma 3).
struct FixedSize {
  Size size{};
  bool operator==(const FixedSize&) const = default;
};

// Gemma 3: an image that is much longer than wide (or the other way round) also gives crops along its long side, behind
// the whole image. All have one size.
struct PanAndScan {
  Size size{};
  int32_t min_crop_side = 256;
  int32_t max_crops = 4;
  double min_ratio = 1.2;
  bool operator==(const PanAndScan&) const = default;
};

// The short side to a length, then the middle (CLIP, LLaVA).
struct ShortestEdge {
  int32_t edge = 224;
  Size crop{};  // 0 x 0: nothing is cut
  bool operator==(const ShortestEdge&) const = default;
};

// Idefics 3, SmolVLM: the long side to a length, then both sides up to multiples of a tile; the tiles row by row, and
// the whole image in the size of a tile behind them.
struct SquareTiles {
  int32_t longest_edge = 0;  // 0: `size` instead
  Size size{};
  int32_t tile_side = 364;
  bool is_split = true;  // false: the whole image alone
  bool operator==(const SquareTiles&) const = default;
};

// Qwen2-VL and later: sides in multiples of patch * merge, the pixels within bounds, the shape kept.
struct SmartSize {
  int64_t min_pixels = 56 * 56;
  int64_t max_pixels = 28 * 28 * 1280;
  int32_t merge = 2;
  bool operator==(const SmartSize&) const = default;
};

// Pixtral, Mistral 3: no side longer than a bound, then both up to multiples of patch * merge.
struct LongestEdge {
  Size bound{};
  int32_t merge = 1;
  bool operator==(const LongestEdge&) const = default;
};

// InternVL: as many tiles as make the nearest shape, row by row, and the whole image as one more tile behind them.
struct ShapedTiles {
  Size tile{};
  int32_t min_tiles = 1;
  int32_t max_tiles = 12;
  bool operator==(const ShapedTiles&) const = default;
};

// LFM2-VL: sides in multiples of patch * merge, the pixels within bounds. What has more than `tolerance` times as many
// as they allow becomes as many tiles as make the nearest shape, row by row, and the whole image within the bounds
// behind them.
struct SmartTiles {
  SmartSize whole{.min_pixels = 64 * 32 * 32, .max_pixels = 256 * 32 * 32};
  int32_t tile_side = 512;
  int32_t min_tiles = 2;  // 1 to 1: none
  int32_t max_tiles = 10;
  double tolerance = 2.0;
  bool operator==(const SmartTiles&) const = default;
};

// Gemma 4: as large as the image's shape allows in at most so many tokens, each of merge * merge patches; sides in
// multiples of patch * merge.
struct TokenBudget {
  int32_t max_tokens = 280;
  int32_t merge = 3;
  bool operator==(const TokenBudget&) const = default;
};

// Idefics 2: the long side no longer than one length, both no shorter than another, the shape kept as far as that goes;
// where it is split, the four quarters of the image, each in its own size, and the whole behind them.
struct BoundedEdges {
  int32_t shortest_edge = 378;
  int32_t longest_edge = 980;
  bool is_split = false;
  bool operator==(const BoundedEdges&) const = default;
};

// Llama 4: as many square tiles as hold the image with the least change of its size, black at the right and at the
// bottom, row by row; of several the whole image as one more tile behind them.
struct FittedTiles {
  int32_t tile_side = 336;
  int32_t max_tiles = 16;
  bool is_largest = false;  // the most that hold it; else an image becomes larger only up to a tile's side
  bool operator==(const FittedTiles&) const = default;
};

// LLaVA-NeXT: the image in the middle of that canvas which keeps most of it, black around it; its tiles row by row, and
// the whole image in a tile behind them, also where there is one.
struct CanvasTiles {
  int32_t tile_side = 336;
  std::vector<Size> canvases{};  // multiples of a tile
  bool operator==(const CanvasTiles&) const = default;
};

using Layout = std::variant<FixedSize, PanAndScan, ShortestEdge, SquareTiles, SmartSize, LongestEdge, ShapedTiles,
                            SmartTiles, TokenBudget, BoundedEdges, FittedTiles, CanvasTiles>;

// A byte to a number, in f32, as torchvision's processors compute it. With both: (v - mean * n) / (std * n), where n is
// 1 / rescale_factor, 255 as a rule, and the products are f32 before the byte is looked at. Mean and deviation alone:
// (v - mean) / std. The factor alone: v * factor. None: v. is_rounded, with both: v * factor, less mean, divided by
// std, of which all three, mean and std are rounded to bf16.
struct Normalisation {
  bool does_rescale = true;
  bool does_normalise = true;
  double rescale_factor = 1.0 / 255;
  std::array<double, 3> mean{0.5, 0.5, 0.5};
  std::array<double, 3> deviation{0.5, 0.5, 0.5};
  bool is_rounded = false;
  bool operator==(const Normalisation&) const = default;
};

struct Recipe {
  Layout layout{};
  Filter filter = Filter::kBicubic;
  Normalisation normalisation{};
  int32_t patch_side = 14;

  bool operator==(const Recipe&) const = default;
};

// One line, for people: "448 x 448 tiles, 1 to 12, ...; bicubic; patches of 14; mean ... ".
std::string describe(const Recipe& recipe);

}  // namespace candor::image
