#include "apps/explain/image_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostMapCols = 32;
constexpr int kMostMapRows = 16;
constexpr size_t kPatchesShown = 4;

// One patch, in the pixels of its image.
struct Patch {
  size_t tile = 0;
  int32_t row = 0, col = 0;  // from 1
  double left = 0, top = 0, width = 0, height = 0;
  double share = 0;
};

std::vector<Patch> patches_of(const ImageAttention& image) {
  std::vector<Patch> patches;
  for (size_t t = 0; t < image.tiles.size(); ++t) {
    const ImageAttention::Tile& tile = image.tiles[t];
    const double width = tile.width / tile.cols, height = tile.height / tile.rows;
    for (size_t i = 0; i < tile.shares.size(); ++i) {
      const auto row = static_cast<int32_t>(i) / tile.cols, col = static_cast<int32_t>(i) % tile.cols;
      patches.push_back({t + 1, row + 1, col + 1, tile.left + col * width, tile.top + row * height, width, height,
                         static_cast<double>(tile.shares[i])});
    }
  }
  return patches;
}

double overlap(double begin, double length, double other, double other_length) {
  return std::max(0.0, std::min(begin + length, other + other_length) - std::max(begin, other));
}

// The image in cells: patches of all tiles, spread over the cells that they lie in.
class Map {
 public:
  Map(const ImageAttention& image, std::span<const Patch> patches) {
    double width = image.image_width, height = image.image_height;
    for (const Patch& patch : patches) {
      width = std::min(width, patch.width);
      height = std::min(height, patch.height);
    }
    n_cols_ = cells(image.image_width, width, kMostMapCols);
    n_rows_ = cells(image.image_height, height, kMostMapRows);
    cells_.resize(static_cast<size_t>(n_cols_) * static_cast<size_t>(n_rows_));
    for (const Patch& patch : patches) add(image, patch);
  }

  // Two columns a cell, which is about as high as wide.
  std::string text() const {
    constexpr std::string_view kShades = " .:-=+*#%@";
    const auto [least, most] = std::ranges::minmax(cells_);
    std::string out;
    for (int row = 0; row < n_rows_; ++row) {
      out += "  |";
      for (int col = 0; col < n_cols_; ++col) {
        const double cell = cells_[static_cast<size_t>(row * n_cols_ + col)];
        const double part = most > least ? (cell - least) / (most - least) : 0.0;
        const auto shade = static_cast<size_t>(std::lround(part * static_cast<double>(kShades.size() - 1)));
        out += std::string(2, kShades[shade]);
      }
      out += "|\n";
    }
    return out + fmt::format("  from {:.4f} (blank) to {:.4f} (@) a cell\n", least, most);
  }

 private:
  static int cells(int32_t side, double patch, int most) {
    return std::clamp(static_cast<int>(std::lround(side / std::max(patch, 1.0))), 1, most);
  }
  void add(const ImageAttention& image, const Patch& patch) {
    const double width = static_cast<double>(image.image_width) / n_cols_;
    const double height = static_cast<double>(image.image_height) / n_rows_;
    for (int row = 0; row < n_rows_; ++row) {
      const double down = overlap(patch.top, patch.height, row * height, height) / patch.height;
      for (int col = 0; down > 0 && col < n_cols_; ++col) {
        const double across = overlap(patch.left, patch.width, col * width, width) / patch.width;
        cells_[static_cast<size_t>(row * n_cols_ + col)] += patch.share * down * across;
      }
    }
  }

  int n_cols_ = 1, n_rows_ = 1;
  std::vector<double> cells_;
};

std::string place_of(const Patch& patch, const ImageAttention& image) {
  const std::string tile = image.tiles.size() > 1 ? fmt::format("tile {}, ", patch.tile) : "";
  return fmt::format("{}row {}, column {}", tile, patch.row, patch.col);
}

std::vector<Patch> strongest(std::vector<Patch> patches) {
  const size_t n = std::min(kPatchesShown, patches.size());
  std::ranges::stable_sort(patches, [](const Patch& a, const Patch& b) { return a.share > b.share; });
  patches.resize(n);
  return patches;
}

void add_map(const ImageAttention& image, size_t number, const Style& style, std::string& out) {
  const std::vector<Patch> patches = patches_of(image);
  if (patches.empty()) return;
  out += fmt::format("  image {}, {} x {} pixels: {:.3f} of it\n", number, image.image_width, image.image_height,
                     image.share);
  out += style.dim(Map(image, patches).text());
  for (const Patch& patch : strongest(patches)) {
    out +=
        fmt::format("  {:.4f}  {} (pixels {:.0f} to {:.0f}, {:.0f} to {:.0f})\n", patch.share, place_of(patch, image),
                    patch.left, patch.left + patch.width, patch.top, patch.top + patch.height);
  }
}

void add_line(const TokenEvent& event, const TokenName& name, std::string& out) {
  out +=
      "  " + padded(fitted(name(event.token), kTokenColumns), kTokenColumns, fitted(name(event.token), kTokenColumns));
  const std::vector<ImageAttention>& images = event.explanation->images;
  for (size_t i = 0; i < images.size(); ++i) {
    const std::vector<Patch> best = strongest(patches_of(images[i]));
    if (best.empty()) continue;
    out += fmt::format("{}image {} {:.3f}, most at {}", i == 0 ? " " : "; ", i + 1, images[i].share,
                       place_of(best.front(), images[i]));
  }
  out += "\n";
}

bool shows_images(const TokenEvent& event) {
  return event.explanation && !event.explanation->images.empty();
}

}  // namespace

std::string image_maps_text(std::span<const TokenEvent> events, const TokenName& name, const Style& style) {
  std::string out;
  for (const TokenEvent& event : events) {
    if (!shows_images(event)) continue;
    if (!out.empty()) {
      add_line(event, name, out);
      continue;
    }
    out += style.bold("attention of the prompt's last token, the mean of all heads and layers") + "\n";
    const std::vector<ImageAttention>& images = event.explanation->images;
    for (size_t i = 0; i < images.size(); ++i) add_map(images[i], i + 1, style, out);
    out += style.bold("and of what each token was chosen by") + "\n";
    add_line(event, name, out);
  }
  return out;
}

Json images_json(const std::vector<ImageAttention>& images) {
  Json list = Json::array();
  for (const ImageAttention& image : images) {
    Json tiles = Json::array();
    for (const ImageAttention::Tile& tile : image.tiles) {
      tiles.push_back({{"rows", tile.rows},
                       {"cols", tile.cols},
                       {"box", {tile.left, tile.top, tile.width, tile.height}},
                       {"is_whole", tile.is_whole},
                       {"shares", tile.shares}});
    }
    list.push_back({{"width", image.image_width},
                    {"height", image.image_height},
                    {"share", image.share},
                    {"tiles", std::move(tiles)}});
  }
  return list;
}

}  // namespace candor::apps
