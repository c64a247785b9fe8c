#pragma once
// The vision part of a model, ready to run: entry, tower and projector in a backend of their own. Images become rows of
// the text model. One thread at a time; the thread's float mode is platform::ScopedFloatMode's.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "formats/model_file.h"
#include "image/prepare.h"
#include "model/model.h"
#include "vision/resampler.h"
#include "vision/row_layers.h"
#include "vision/vision_spec.h"

namespace candor::vision {

// Metadata alone. Refused where the rows do not fit the text model.
Result<VisionSpec> read_vision(const formats::ModelFile& file, const model::ArchSpec& text);
// Of the blocks, entry and projector: their architecture and the content of their tensors (model/fingerprint.h).
Result<uint64_t> fingerprint_of(const formats::ModelFile& file, const VisionSpec& spec);
// Memory that load() takes: weights, K/V of one tile, activations.
Result<uint64_t> planned_bytes(const formats::ModelFile& file, const VisionSpec& spec, const backend::Backend& backend);

// Rows of all tiles, one tile after another.
struct EncodedImage {
  std::vector<float> rows{};  // [n_rows, D of the text model], or as much again for each of VisionSpec::taps
  int32_t n_rows = 0;
};

class Encoder {
 public:
  // Reads all weights. The backend has nothing else.
  static Result<std::unique_ptr<Encoder>> load(const formats::ModelFile& file, VisionSpec spec,
                                               std::unique_ptr<backend::Backend> backend);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  const VisionSpec& spec() const { return spec_; }
  size_t n_bytes() const;

  // Appends the rows of one tile. Numbers that are not finite are an error.
  Result<void> encode(const image::Tile& tile, EncodedImage& image);
  // Behind the last tile: brings the rows into the image's order.
  void finish(const image::Prepared& prepared, EncodedImage& image) const;

 private:
  Encoder(VisionSpec spec, std::unique_ptr<backend::Backend> backend);
  Result<void> make_room(int32_t n_patches, int32_t n_blocks);
  // The rows behind each of the taps' blocks, then those behind the last norm.
  std::vector<std::vector<float>> run_tower(const image::Tile& tile);
  std::vector<float> own_positions(const image::Tile& tile) const;
  // By Standard, in place.
  void standardise(std::span<float> rows) const;
  // What the first block reads, patches in that order.
  std::vector<float> enter(const image::Tile& tile, std::span<const int32_t> order);

  VisionSpec spec_;
  std::unique_ptr<backend::Backend> backend_;
  std::unique_ptr<model::Model> tower_;
  RowLayers entry_;
  RowLayers projector_;
  std::vector<RowLayers> taps_;
  std::unique_ptr<Resampler> resampler_;  // where there is one
  std::vector<float> positions_;          // of GridPositions
  std::vector<float> shift_;              // of Standard
  std::vector<float> gain_;
  std::vector<float> newline_;  // [D of the text model] of VisionSpec
  std::unique_ptr<backend::KvStore> kv_;
  int32_t n_patches_ = 0;  // that there is room for
};

// The most rows that one tile gives.
int32_t most_rows(const VisionSpec& spec);
// What a tile's patches become in the projector; its rows in the text model, where no resampler reads them.
int32_t projected_rows(const VisionSpec& spec, const image::Tile& tile);
int32_t rows_of(const VisionSpec& spec, const image::Tile& tile);
// The rows of an image in the text model: of each tile, or of all together where lines end in newlines.
std::vector<int32_t> rows_of_tiles(const VisionSpec& spec, const image::Prepared& prepared);

}  // namespace candor::vision
