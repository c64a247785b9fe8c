#pragma once
// What an image costs in a vision tower, by the rules of model/arch_cost.h: each tile reads all weights once. Pure; any
// thread.

#include "image/prepare.h"
#include "model/arch_cost.h"
#include "vision/vision_spec.h"

namespace candor::vision {

struct TowerCost {
  double n_patches = 0;  // of all tiles
  double n_rows = 0;     // that they become in the text model
  model::Work work{};
};

// weight_bytes: of tower and projector.
TowerCost cost_of(const VisionSpec& spec, double weight_bytes, const image::Prepared& prepared);

}  // namespace candor::vision
