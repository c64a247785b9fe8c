#pragma once
// The image of an estimate, and the model's tower that reads it: a size as it was typed, or a file's.

#include <memory>
#include <string>

#include "apps/estimate/options.h"
#include "apps/estimate/subject.h"
#include "base/error.h"
#include "engine/open/loaded_vision.h"
#include "image/prepare.h"
#include "tensor/dtype.h"
#include "vision/tower_cost.h"

namespace candor::apps {

struct SubjectImage {
  std::shared_ptr<const engine::LoadedVision> vision{};
  image::Prepared prepared{};  // without numbers
  vision::TowerCost cost{};
  double parameters = 0;  // of tower and projector
  double weight_bytes = 0;
  Arithmetic arithmetic = Arithmetic::kBf16;  // of most of them
};

// REQUIRES: options.image. Refused where the model is not a file's, or takes no images.
Result<SubjectImage> choose_image(const EstimateOptions& options, const Subject& subject);

// The median of some runs, on this machine, of an image of that size.
Result<double> measured_encode_ms(const SubjectImage& image);

}  // namespace candor::apps
