#include "apps/commands/vision_text.h"

#include <fmt/format.h>

#include "apps/terminal/terminal.h"

namespace candor::apps {

std::string vision_text(const VisionAnswer& vision) {
  if (!vision) return "not usable: " + printable(vision.error().message);
  if (!*vision) return {};
  const engine::VisionFigures& tower = **vision;
  return fmt::format(
      "{}, {} blocks of {}, patches of {} x {} pixels, at most {} patches and {} rows a tile, {} in memory",
      tower.family, tower.n_blocks, tower.dim, tower.patch_side, tower.patch_side, tower.max_patches, tower.max_rows,
      format_bytes(tower.n_bytes));
}

nlohmann::ordered_json vision_json(const VisionAnswer& vision) {
  if (!vision) return {{"error", vision.error().message}};
  if (!*vision) return nullptr;
  const engine::VisionFigures& tower = **vision;
  return {{"projector", tower.family},
          {"blocks", tower.n_blocks},
          {"dim", tower.dim},
          {"patch_side", tower.patch_side},
          {"max_patches", tower.max_patches},
          {"max_rows", tower.max_rows},
          {"file_bytes", tower.file_bytes},
          {"bytes", tower.n_bytes}};
}

}  // namespace candor::apps
