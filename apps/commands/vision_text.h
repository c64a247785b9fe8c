#pragma once
// What candor show and candor fit say of the part of a model that reads images.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/open/loaded_vision.h"

namespace candor::apps {

using VisionAnswer = Result<std::optional<engine::VisionFigures>>;

// "gemma3, 27 blocks of 1152, patches of 14 x 14, ..."; the error where a tower is there and cannot be used; "" where
// there is none.
std::string vision_text(const VisionAnswer& vision);
// null where there is none.
nlohmann::ordered_json vision_json(const VisionAnswer& vision);

}  // namespace candor::apps
