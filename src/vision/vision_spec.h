#pragma once
// What a model does with images, as data: how they are cut into patches, the tower's blocks, what becomes of their
// rows, and what stands for an image in a prompt. One for each projector (families/). Letters: D = width of the tower,
// P = side of a patch in pixels.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "image/prepare.h"
#include "image/recipe.h"
#include "model/arch_spec.h"
#include "vision/row_layers.h"

namespace candor::vision {

// What happens to a tower's rows before the projector: they stand in a grid as the patches did. kAverage: the mean of
// each n x n rows. kJoin: each n x n rows, one row of the grid after another, become one row n * n * D wide (Shi et
// al., "Real-time single image and video super-resolution", 2016: the inverse of its shuffle). kUnfold: the same
// numbers as kJoin, the n * n of one column together, as a convolution reads them.
enum class RegroupKind : uint8_t { kNone, kAverage, kJoin, kUnfold };
struct Regroup {
  RegroupKind kind = RegroupKind::kNone;
  int32_t n = 1;
  bool is_joined() const { return kind == RegroupKind::kJoin || kind == RegroupKind::kUnfold; }
  int32_t width(int32_t dim) const { return is_joined() ? n * n * dim : dim; }
  int32_t n_rows(int32_t rows, int32_t cols) const { return (rows / n) * (cols / n); }
  bool operator==(const Regroup&) const = default;
};

// What stands for an image in a prompt. The template writes the mark; it becomes what expand() gives, in which `row`
// stands once for each row of the image, tile after tile.
struct ImagePrompt {
  std::string_view mark{};
  std::span<const std::string_view> row_tokens{};  // the first that the vocabulary has is `row`
  std::string (*expand)(const image::Prepared& prepared, std::string_view row,
                        std::span<const int32_t> rows_of_tiles) = nullptr;
  // Rows of an image see one another, also those that come later.
  bool is_seen_whole = false;
  // They stand at positions of a grid (Sequence::axes_of).
  bool is_grid = false;
  // Stands at both ends of what expand() gives. Where two images meet it stands once, and words directly behind it get
  // a space.
  std::string_view joint{};
};

// What a block's rows give besides: regrouped, then through layers of their own, to the width of the text model, behind
// whose first blocks it is added (DeepStack).
struct DeepTap {
  int32_t block = 0;
  RowLayersSpec projector{};
};

// Blocks whose rows see those of their own window alone: `side` x `side` patches, fewer at the right and lower ends.
struct Windows {
  int32_t side = 0;              // 0: all blocks see the whole tile
  std::vector<bool> is_whole{};  // [blocks]: this one does
  bool operator==(const Windows&) const = default;
};

// A table of positions, added behind the entry. kStretched and kFiltered: of side * side patches, which each tile has
// in its own size. Filtered by a bilinear filter, which widens where the table becomes smaller, as PyTorch's
// interpolate() with antialias; else each patch gets the table's four nearest rows by their distance, corners on
// corners. kByAxis: a row for each of `side` columns, then one for each of as many rows of patches; a patch gets the
// sum of its two. Without a table: none.
// kNearest: the row of the table of side * side where a patch begins, as Idefics 2 counts it.
enum class PositionKind : uint8_t { kStretched, kFiltered, kByAxis, kNearest };
struct GridPositions {
  std::string_view table{};
  int32_t side = 0;
  PositionKind kind = PositionKind::kStretched;
};

// What regrouped rows become: (x * factor - shift) * gain. Both are tensors, [D]; without names there are none.
struct Standard {
  float factor = 1.0f;
  std::string_view shift{};
  std::string_view gain{};
};

// Rows of the model's own that read those of a tile and one another through a few blocks, and stand for the tile in the
// text (Jaegle et al., "Perceiver", 2021). A block norms both kinds of rows by gains of their own.
struct ResamplerSpec {
  int32_t n_rows = 0;  // 0: there is none
  int32_t dim = 0;
  int32_t n_blocks = 0;
  model::BlockSpec block{};
};

struct VisionSpec {
  std::string family{};
  image::Recipe recipe{};
  // Rows that stand before the patches in the tower (a class token): zeros come in for them, and what comes out is
  // dropped. The table of positions has rows for them.
  int32_t n_lead_rows = 0;
  int32_t first_axis = 0;  // the position of the first row and column of patches; rows before them stand at 0
  RowLayersSpec entry{};   // [3 * P * P] to [D]
  GridPositions positions{};
  model::ArchSpec tower{};  // blocks over the rows of one tile, all of which see one another
  Windows windows{};
  Regroup regroup{};
  Standard standard{};
  RowLayersSpec projector{};  // to the width of the text model
  // The tensor that stands behind each line of an image's rows; empty: they are those of its tiles, one after another.
  std::string newline{};
  std::vector<DeepTap> taps{};  // ascending by block
  ResamplerSpec resampler{};    // behind the projector
  ImagePrompt prompt{};
  int32_t max_patches = 0;              // of a tile
  std::vector<std::string> settings{};  // names of tensors that hold parts of this
  int32_t n_deep() const { return static_cast<int32_t>(taps.size()); }
};

}  // namespace candor::vision
