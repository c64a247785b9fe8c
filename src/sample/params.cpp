#include "sample/params.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "candor/sampling_table.h"

namespace candor::sample {
namespace {

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

Error invalid(std::string_view field, std::string message) {
  return fail(ErrorKind::kInvalidInput, std::move(message), std::string(field));
}

Error out_of_range(const SamplingNumber& number, const std::string& value) {
  const std::string note = number.note.empty() ? "" : " (" + std::string(number.note) + ")";
  return invalid(number.name, std::string(number.name) + " is " + value + ", expected " + shown(number.least) + " to " +
                                  shown(number.most) + note);
}

Result<void> check_number(const SamplingNumber& number, const SamplingParams& sampling) {
  if (const auto* count = std::get_if<int64_t SamplingParams::*>(&number.member)) {
    const int64_t value = sampling.**count;
    if (value >= static_cast<int64_t>(number.least) && value <= static_cast<int64_t>(number.most)) return {};
    return out_of_range(number, std::to_string(value));
  }
  const double value = value_of(number, sampling);
  if (value >= number.least && value <= number.most) return {};  // NaN lies in no range
  return out_of_range(number, shown(value));
}

std::string stage_names() {
  std::string names;
  for (const Stage stage : kDefaultStages) names += (names.empty() ? "" : ", ") + std::string(to_string(stage));
  return names;
}

std::optional<Stage> find_stage(std::string_view name) {
  for (const Stage stage : kDefaultStages) {
    if (to_string(stage) == name) return stage;
  }
  return std::nullopt;
}

Result<void> set_order(const std::vector<std::string>& names, ChainParams& params) {
  if (names.empty()) return {};
  params.stages.clear();
  for (const std::string& name : names) {
    const auto stage = find_stage(name);
    if (!stage) {
      return invalid("samplers", "samplers names \"" + name.substr(0, 40) + "\", expected some of " + stage_names());
    }
    if (std::ranges::find(params.stages, *stage) != params.stages.end()) {
      return invalid("samplers", "samplers names " + name + " twice, expected each at most once");
    }
    params.stages.push_back(*stage);
  }
  for (const Stage stage : kDefaultStages) {
    if (!is_on(params, stage) || std::ranges::find(params.stages, stage) != params.stages.end()) continue;
    const std::string name(to_string(stage));
    return invalid("samplers", "samplers leaves out " + name + ", which is set: it would have no effect");
  }
  return {};
}

}  // namespace

Result<void> check_range(std::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  const std::string range = max == std::numeric_limits<int64_t>::max()
                                ? "at least " + std::to_string(min)
                                : std::to_string(min) + " to " + std::to_string(max);
  return invalid(field, std::string(field) + " is " + std::to_string(value) + ", expected " + range);
}

Result<ChainParams> make_chain_params(const SamplingParams& sampling) {
  for (const SamplingNumber& number : kSamplingNumbers) CANDOR_TRY(check_number(number, sampling));
  ChainParams params;
  params.temperature = sampling.temperature;
  params.temperature_range = sampling.dynatemp_range;
  params.temperature_exponent = sampling.dynatemp_exponent;
  params.top_k = static_cast<int32_t>(sampling.top_k);
  params.typical_p = sampling.typical_p;
  params.top_p = sampling.top_p;
  params.min_p = sampling.min_p;
  params.xtc_probability = sampling.xtc_probability;
  params.xtc_threshold = sampling.xtc_threshold;
  params.penalties = {sampling.repetition_penalty, sampling.frequency_penalty, sampling.presence_penalty,
                      sampling.repeat_last_n};
  params.dry.multiplier = sampling.dry_multiplier;
  params.dry.base = sampling.dry_base;
  params.dry.allowed_length = sampling.dry_allowed_length;
  params.dry.window = sampling.dry_penalty_last_n;
  params.bans.no_repeat_ngram = sampling.no_repeat_ngram_size;
  params.bans.min_tokens = sampling.min_tokens;
  CANDOR_TRY(set_order(sampling.samplers, params));
  return params;
}

}  // namespace candor::sample
