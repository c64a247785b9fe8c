#pragma once
// What open() makes of a model's vision tower: its file and what it says, read from metadata; the weights come with the
// first image, so that text alone costs nothing.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "base/error.h"
#include "candor/info.h"
#include "candor/options.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "vision/encoder.h"
#include "vision/vision_spec.h"

namespace candor::engine {

struct LoadedVision {
  EngineOptions options{};  // of the encoder's backend
  std::unique_ptr<formats::ModelFile> file{};
  vision::VisionSpec spec{};
  mutable std::mutex mutex{};                     // of what reads the file's weights
  mutable std::optional<uint64_t> fingerprint{};  // guarded by it
};

// Any thread. Waits while the encoder is read.
Result<VisionInfo> vision_info(const LoadedVision& vision);

// EngineOptions::mmproj_path, the tower in the model's own folder, or the mmproj file beside the model's; nullptr where
// there is none. Those of another model are refused.
Result<std::unique_ptr<LoadedVision>> open_vision(const EngineOptions& options, const model::ArchSpec& text);

// What open_vision() would find, for people; nullopt where there is no tower.
struct VisionFigures {
  std::string family{};
  int32_t n_blocks = 0;
  int32_t dim = 0;
  int32_t patch_side = 0;   // in pixels
  int32_t max_patches = 0;  // of a tile
  int32_t max_rows = 0;     // of a tile, in the text model
  uint64_t file_bytes = 0;  // of the tensors
  uint64_t n_bytes = 0;     // memory: weights, K/V and activations
};
Result<std::optional<VisionFigures>> vision_figures(const EngineOptions& options, const model::ArchSpec& text);

// Reads the weights, into a backend of its own. Refused where the machine has not the memory.
Result<std::unique_ptr<vision::Encoder>> load_encoder(const LoadedVision& vision);

}  // namespace candor::engine
