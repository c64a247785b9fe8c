#pragma once
// A model's preprocessor_config.json (or processor_config.json, which holds it under "image_processor") as a Recipe:
// the names, the defaults and the meanings of transformers 5. A processor that is not known is refused by its name, and
// so is a key that would change the result and has no place in a Recipe. The text is untrusted. Any thread.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "image/recipe.h"

namespace candor::image {

// Of the vision tower, by its config.json.
struct TowerSides {
  int32_t patch = 0;
  int32_t merge = 1;  // patches that become one token, along a side: "spatial_merge_size"
};

// kUnsupported, kInvalidInput: one line that names the key.
Result<Recipe> recipe_of(std::string_view text, const TowerSides& tower);

}  // namespace candor::image
