#pragma once
// What open() makes of a model's vision tower: its file and what it says, read from metadata; the weights come with the
// first image, so that text alone costs nothing.

#include <cstdint>
#include <memory>
#include <optional>

#include "backend/backend.h"
#include "base/error.h"
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
};

// EngineOptions::mmproj_path, the tower in the model's own folder, or the mmproj file beside the model's; nullptr where
// there is none. Those of another model are refused.
Result<std::unique_ptr<LoadedVision>> open_vision(const EngineOptions& options, const model::ArchSpec& text);

// Reads the weights, into a backend of its own. Refused where the machine has not the memory.
Result<std::unique_ptr<vision::Encoder>> load_encoder(const LoadedVision& vision);

}  // namespace candor::engine
