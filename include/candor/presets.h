#pragma once
// Settings of the sampler by purpose. Any thread.

#include <string_view>

#include "candor/request.h"
#include "candor/result.h"

namespace candor {

struct SamplingPreset {
  std::string_view name;
  double temperature;
  double top_p;
};

// By purpose; top-k is off in all of them.
inline constexpr SamplingPreset kSamplingPresets[] = {
    {"code", 0.1, 0.95}, {"factual", 0.2, 0.9}, {"chat", 0.7, 0.9}, {"creative", 0.95, 0.95}, {"brainstorm", 1.1, 0.98},
};

// Sets temperature, top_p and top_k; an unknown name is refused with the list.
Result<void> apply_preset(std::string_view name, SamplingParams& params);

}  // namespace candor
