#include "sample/params.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

namespace candor::sample {
namespace {

constexpr double kMaxCount = 2147483647.0;

constexpr NumberRange kRanges[] = {
    {"temperature", 0, 100, " (0 = greedy)"},
    {"dynatemp_range", 0, 100, " (0 = off)"},
    {"dynatemp_exponent", 0.01, 100},
    {"typical_p", 0, 1, " (1 = off)"},
    {"top_p", 0, 1, " (1 = off)"},
    {"min_p", 0, 1, " (0 = off)"},
    {"xtc_probability", 0, 1, " (0 = off)"},
    {"xtc_threshold", 0, 1},
    {"repetition_penalty", 0.01, 100, " (1 = off)"},
    {"frequency_penalty", -2, 2, " (0 = off)"},
    {"presence_penalty", -2, 2, " (0 = off)"},
    {"dry_multiplier", 0, 100, " (0 = off)"},
    {"dry_base", 1, 10},
    {"top_k", 0, kMaxCount, " (0 = off)"},
    {"repeat_last_n", -1, kMaxCount, " (-1 = the whole text, 0 = off)"},
    {"dry_allowed_length", 1, kMaxCount},
    {"dry_penalty_last_n", -1, kMaxCount, " (-1 = the whole text, 0 = off)"},
    {"no_repeat_ngram_size", 0, kMaxCount, " (0 = off)"},
    {"min_tokens", 0, kMaxCount},
};

struct RealMember {
  std::string_view field;
  double SamplingParams::*member;
};
constexpr RealMember kReals[] = {
    {"temperature", &SamplingParams::temperature},
    {"dynatemp_range", &SamplingParams::dynatemp_range},
    {"dynatemp_exponent", &SamplingParams::dynatemp_exponent},
    {"typical_p", &SamplingParams::typical_p},
    {"top_p", &SamplingParams::top_p},
    {"min_p", &SamplingParams::min_p},
    {"xtc_probability", &SamplingParams::xtc_probability},
    {"xtc_threshold", &SamplingParams::xtc_threshold},
    {"repetition_penalty", &SamplingParams::repetition_penalty},
    {"frequency_penalty", &SamplingParams::frequency_penalty},
    {"presence_penalty", &SamplingParams::presence_penalty},
    {"dry_multiplier", &SamplingParams::dry_multiplier},
    {"dry_base", &SamplingParams::dry_base},
};

struct CountMember {
  std::string_view field;
  int64_t SamplingParams::*member;
};
constexpr CountMember kCounts[] = {
    {"top_k", &SamplingParams::top_k},
    {"repeat_last_n", &SamplingParams::repeat_last_n},
    {"dry_allowed_length", &SamplingParams::dry_allowed_length},
    {"dry_penalty_last_n", &SamplingParams::dry_penalty_last_n},
    {"no_repeat_ngram_size", &SamplingParams::no_repeat_ngram_size},
    {"min_tokens", &SamplingParams::min_tokens},
};

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

Error invalid(std::string_view field, std::string message) {
  return fail(ErrorKind::kInvalidInput, std::move(message), std::string(field));
}

Error out_of_range(const NumberRange& range, const std::string& value) {
  return invalid(range.field, std::string(range.field) + " is " + value + ", expected " + shown(range.min) + " to " +
                                  shown(range.max) + std::string(range.note));
}

// NaN lies in no range.
Result<void> check_numbers(const SamplingParams& sampling) {
  for (const RealMember& real : kReals) {
    const NumberRange& range = *find_range(real.field);
    const double value = sampling.*real.member;
    if (!(value >= range.min && value <= range.max)) return out_of_range(range, shown(value));
  }
  for (const CountMember& count : kCounts) {
    const NumberRange& range = *find_range(count.field);
    const int64_t value = sampling.*count.member;
    if (value < static_cast<int64_t>(range.min) || value > static_cast<int64_t>(range.max)) {
      return out_of_range(range, std::to_string(value));
    }
  }
  return {};
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

std::span<const NumberRange> number_ranges() {
  return kRanges;
}

const NumberRange* find_range(std::string_view field) {
  const auto it = std::ranges::find(kRanges, field, &NumberRange::field);
  return it == std::end(kRanges) ? nullptr : &*it;
}

Result<void> check_range(std::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  const std::string range = max == std::numeric_limits<int64_t>::max()
                                ? "at least " + std::to_string(min)
                                : std::to_string(min) + " to " + std::to_string(max);
  return invalid(field, std::string(field) + " is " + std::to_string(value) + ", expected " + range);
}

Result<ChainParams> make_chain_params(const SamplingParams& sampling) {
  CANDOR_TRY(check_numbers(sampling));
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
