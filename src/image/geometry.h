#pragma once
// The sizes that image processors of transformers 5 compute from an image's, in the same arithmetic on doubles. Pure;
// any thread. The sides that come in are 1 to kMostSide; those that go out may be any, and resize() checks them.

#include <cstdint>

#include "base/error.h"
#include "image/image.h"
#include "image/recipe.h"

namespace candor::image {

// get_resize_output_image_size of image_transforms.
Size with_short_side(Size image, int32_t edge);

// Idefics 3: the long side to a length, an odd short side plus one, neither beyond 4096.
Size with_long_side(Size image, int32_t edge);
// ... then both up to multiples of a tile.
Size in_tiles(Size image, int32_t side);

// Qwen's smart_resize. kInvalidInput where one side is more than 200 times the other.
Result<Size> smart_size(Size image, const SmartSize& layout, int32_t patch_side);

// LFM2-VL: kInvalidInput where one side is so many times the other that bounds and multiples contradict each other.
Result<Size> smart_whole(Size image, const SmartSize& layout, int32_t patch_side);
// Whether tiles are made, and in which grid.
Size smart_grid(Size image, const SmartTiles& layout, int32_t patch_side);

// Gemma 4's get_aspect_ratio_preserving_size.
Size within_budget(Size image, const TokenBudget& layout, int32_t patch_side);

// Idefics 2's get_resize_output_image_size.
Size between_edges(Size image, const BoundedEdges& layout);

// Pixtral.
Size within_bound(Size image, const LongestEdge& layout, int32_t patch_side);

// InternVL's get_optimal_tiled_canvas: rows and columns of tiles.
Size shaped_grid(Size image, const ShapedTiles& layout);

// Llama 4's get_best_fit: rows and columns of tiles. Scales are f32, as there.
Size fitted_grid(Size image, const FittedTiles& layout);
// ... and the image's size on them.
Size fitted_size(Size image, Size grid, const FittedTiles& layout);

// LLaVA-NeXT's select_best_resolution, and the image's size on it. REQUIRES: canvases.
Size best_canvas(Size image, const CanvasTiles& layout);
Size size_on_canvas(Size image, Size canvas);
// What its unpad_image leaves of a grid of rows that stands for such a canvas.
struct Part {
  int32_t top = 0, left = 0, height = 0, width = 0;
  bool operator==(const Part&) const = default;
};
Part unpadded(Size image, Size grid);

// Gemma 3: rows and columns of crops; 0 x 0 where there are none.
Size scan_grid(Size image, const PanAndScan& layout);

}  // namespace candor::image
