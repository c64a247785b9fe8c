#include "engine/open/loaded_vision.h"

#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "engine/open/device_choice.h"
#include "engine/open/loaded_model.h"
#include "image/recipe.h"
#include "platform/topology.h"
#include "vision/encoder.h"
#include "vision/vision_files.h"

namespace candor::engine {
namespace {

Result<std::unique_ptr<formats::ModelFile>> open_file(const EngineOptions& options) {
  if (!options.mmproj_path.empty()) return vision::open_mmproj(options.mmproj_path);
  std::error_code ignored;
  if (std::filesystem::is_directory(options.model_path, ignored)) return vision::open_tower_of(options.model_path);
  CANDOR_ASSIGN(const auto beside, vision::mmproj_beside(options.model_path));
  if (!beside) return nullptr;
  return vision::open_mmproj(*beside);
}

EngineOptions of_encoder(const EngineOptions& options) {
  EngineOptions own;
  own.model_path = options.model_path;
  own.backend = options.backend == "auto" ? "cpu" : options.backend;
  own.n_threads = options.n_threads;
  return own;
}

}  // namespace

Result<std::unique_ptr<LoadedVision>> open_vision(const EngineOptions& options, const model::ArchSpec& text) {
  if (!options.takes_images) return nullptr;
  auto loaded = std::make_unique<LoadedVision>();
  CANDOR_ASSIGN(loaded->file, open_file(options));
  if (loaded->file == nullptr) return nullptr;
  CANDOR_ASSIGN(loaded->spec, vision::read_vision(*loaded->file, text));
  loaded->options = of_encoder(options);
  return loaded;
}

Result<std::optional<VisionFigures>> vision_figures(const EngineOptions& options, const model::ArchSpec& text) {
  CANDOR_ASSIGN(const std::unique_ptr<LoadedVision> vision, open_vision(options, text));
  if (vision == nullptr) return std::optional<VisionFigures>();
  const vision::VisionSpec& spec = vision->spec;
  VisionFigures figures{.family = spec.family,
                        .n_blocks = static_cast<int32_t>(spec.tower.blocks.size()),
                        .dim = spec.tower.dim,
                        .patch_side = spec.recipe.patch_side,
                        .max_patches = spec.max_patches,
                        .max_rows = vision::most_rows(spec)};
  for (const TensorView& tensor : vision->file->tensors()) figures.file_bytes += tensor.n_bytes;
  CANDOR_ASSIGN(const std::unique_ptr<backend::Backend> backend, make_named_backend(vision->options));
  CANDOR_ASSIGN(figures.n_bytes, vision::planned_bytes(*vision->file, spec, *backend));
  return std::optional(std::move(figures));
}

Result<VisionInfo> vision_info(const LoadedVision& vision) {
  const std::lock_guard lock(vision.mutex);
  const std::string preparation = image::describe(vision.spec.recipe);
  if (!vision.fingerprint) {
    CANDOR_ASSIGN(const uint64_t content, vision::fingerprint_of(*vision.file, vision.spec));
    vision.fingerprint = hash_bytes(std::as_bytes(std::span(preparation)), content);
  }
  return VisionInfo{vision.spec.family, *vision.fingerprint, preparation};
}

Result<std::unique_ptr<vision::Encoder>> load_encoder(const LoadedVision& vision) {
  const std::lock_guard lock(vision.mutex);
  CANDOR_ASSIGN(std::unique_ptr<backend::Backend> backend, make_named_backend(vision.options));
  CANDOR_ASSIGN(const uint64_t n_bytes, vision::planned_bytes(*vision.file, vision.spec, *backend));
  const uint64_t available = platform::read_topology().memory_available_bytes;
  if (available != 0 && n_bytes > available) {
    return fail(ErrorKind::kOutOfMemory, "images need " + std::to_string(n_bytes >> 20) + " MiB more, and " +
                                             std::to_string(available >> 20) +
                                             " MiB are available: use a smaller context, or quantised weights");
  }
  return vision::Encoder::load(*vision.file, vision.spec, std::move(backend));
}

}  // namespace candor::engine
