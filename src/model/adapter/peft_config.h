#pragma once
// What adapter_config.json of a PEFT folder says (peft 0.21, LoraConfig). Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace candor::model {

struct PeftConfig {
  double alpha = 8.0;
  bool divides_by_root = false;  // rsLoRA (Kalajdzievski, 2023): alpha / sqrt(rank), not alpha / rank
  bool has_gains = false;        // DoRA
  std::vector<std::pair<std::string, double>> alphas{};  // of modules by pattern; the first that fits counts
  std::vector<std::string> parameters{};                 // "target_parameters": tensors that are no modules (experts)

  float scale_of(std::string_view module, int64_t rank) const;
};

// name: of the file, for errors.
Result<PeftConfig> read_peft_config(const nlohmann::json& config, std::string_view name);

// Whether a pattern fits a module's whole name, or what follows one of its dots: letters as they are, "." for any, \d,
// \w, \., [...], each perhaps with *, + or ?; "^" in front. Refused by name: other regular expressions.
Result<void> check_module_pattern(std::string_view pattern, std::string_view name);
bool fits_module(std::string_view pattern, std::string_view module);

}  // namespace candor::model
