#pragma once
// Published models by their shapes, for arithmetic without a file: what their config.json says. The number of
// parameters follows from the shape.

#include <span>
#include <string_view>

#include "model/arch_spec.h"

namespace candor::model {

struct KnownModel {
  std::string_view name;
  double n_parameters;  // as published; a few tenths of a percent beside what the shape gives
  ArchSpec (*spec)();
};

// "gpt2", "llama-2-7b", "qwen3-30b-a3b", "deepseek-v3", ...; ascending by parameters.
std::span<const KnownModel> known_models();
// nullptr for an unknown name.
const KnownModel* find_known_model(std::string_view name);
// The model of the nearest size among those without experts and recurrent layers.
const KnownModel& nearest_dense_model(double n_parameters);

}  // namespace candor::model
