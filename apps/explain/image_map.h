#pragma once
// Where tokens looked in the images of a prompt: for people a coarse map of each image and its strongest patches, as
// JSON every patch.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "apps/explain/stages.h"
#include "apps/terminal/terminal.h"
#include "candor/event.h"

namespace candor::apps {

// Maps for the prompt's last token, whose event is the first; a line for each later token. Empty where no event shows
// any image.
std::string image_maps_text(std::span<const TokenEvent> events, const TokenName& name, const Style& style);
nlohmann::ordered_json images_json(const std::vector<ImageAttention>& images);

}  // namespace candor::apps
