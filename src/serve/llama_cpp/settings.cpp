// How tokens are chosen, in llama.cpp's words: its defaults, its names of stages, and what a reply says of it.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "candor/request.h"
#include "candor/sampling_table.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/llama_cpp/requests.h"

namespace candor::serve::llama_cpp {
namespace {

struct Stage {
  std::string_view written;
  std::string_view name;  // the engine's; "" where it has none
};

constexpr Stage kStages[] = {
    {"penalties", "penalties"}, {"dry", "dry"},     {"temperature", "temperature"}, {"top_k", "top_k"},
    {"typ_p", "typical_p"},     {"typical_p", "typical_p"}, {"top_p", "top_p"},     {"min_p", "min_p"},
    {"xtc", "xtc"},             {"infill", ""},     {"top_n_sigma", ""},            {"adaptive_p", ""},
};

constexpr std::string_view kAllStages[] = {"penalties", "dry",   "temperature", "top_k",
                                           "typical_p", "top_p", "min_p",       "xtc"};

// The numbers that turn a stage on.
struct Switch {
  std::string_view stage;
  std::string_view number;
};

constexpr Switch kSwitches[] = {
    {"penalties", "repetition_penalty"}, {"penalties", "frequency_penalty"}, {"penalties", "presence_penalty"},
    {"dry", "dry_multiplier"},           {"top_k", "top_k"},                 {"typical_p", "typical_p"},
    {"top_p", "top_p"},                  {"min_p", "min_p"},                 {"xtc", "xtc_probability"},
    {"temperature", "dynatemp_range"},
};

void set_number(const SamplingNumber& number, const SamplingParams& from, SamplingParams& to) {
  std::visit([&](auto member) { to.*member = from.*member; }, number.member);
}

// The client wrote it, and it does not count.
bool was_written(const Fields& fields, const SamplingNumber& number) {
  const auto has = [&](std::string_view name) { return !name.empty() && fields.has(std::string(name).c_str()); };
  return has(number.name) || has(number.other_field);
}

bool is_listed(const SamplingParams& sampling, std::string_view stage) {
  return std::ranges::find(sampling.samplers, stage) != sampling.samplers.end();
}

// Greedy choice needs no stage: temperature 0 stays what it is.
void turn_off_unlisted(Fields& fields, SamplingParams& sampling, std::vector<std::string>& warnings) {
  const SamplingParams off;
  const auto turn_off = [&](std::string_view name) {
    const SamplingNumber& number = *find_sampling_number(name);
    const bool was_on = value_of(number, sampling) != value_of(number, off);
    set_number(number, off, sampling);
    if (was_on && was_written(fields, number))
      warnings.push_back(fmt::format("{} has no effect: its stage is not in samplers", name));
  };
  for (const Switch& one : kSwitches) {
    if (!is_listed(sampling, one.stage)) turn_off(one.number);
  }
  if (!is_listed(sampling, "temperature") && sampling.temperature > 0) turn_off("temperature");
}

}  // namespace

SamplingParams default_sampling() {
  SamplingParams sampling;
  sampling.temperature = 0.8;
  sampling.top_k = 40;
  sampling.top_p = 0.95;
  sampling.min_p = 0.05;
  sampling.repeat_last_n = 64;
  return sampling;
}

void read_samplers(Fields& fields, SamplingParams& sampling, std::vector<std::string>& warnings) {
  const Json* list = fields.array("samplers");
  if (list == nullptr) return;
  sampling.samplers.clear();
  for (const Json& item : *list) {
    const auto stage = std::ranges::find_if(kStages, [&](const Stage& one) { return item == one.written; });
    if (stage == std::end(kStages)) {
      return fields.refuse("samplers", fmt::format("samplers holds {}, expected of {}", shown(item),
                                                   fmt::join(kAllStages, ", ")));
    }
    if (stage->name.empty()) {
      warnings.push_back(fmt::format("samplers: {} is not offered and has no effect", stage->written));
    } else if (!is_listed(sampling, stage->name)) {
      sampling.samplers.emplace_back(stage->name);
    }
  }
  turn_off_unlisted(fields, sampling, warnings);
  // Where no stage is left, all stand in their order, and all are off.
  if (sampling.samplers.empty()) sampling.samplers.assign(std::begin(kAllStages), std::end(kAllStages));
}

Json settings_json(const ReplyOptions& options, uint64_t seed) {
  const SamplingParams& sampling = options.sampling;
  const int64_t n_predict = options.is_warm_up ? 0 : sampling.max_tokens.value_or(-1);
  Json json = {{"n_predict", n_predict}, {"seed", seed}};
  for (const SamplingNumber& number : kSamplingNumbers) {
    const auto value = [&](auto member) { return Json(sampling.*member); };
    const Json shown = std::visit(value, number.member);
    json[std::string(number.name)] = shown;
    if (!number.other_field.empty()) json[std::string(number.other_field)] = shown;
  }
  json["dry_sequence_breakers"] = sampling.dry_sequence_breakers;
  json["stop"] = sampling.stop;
  json["ignore_eos"] = sampling.ignore_eos;
  json["n_probs"] = std::max(0, sampling.logprobs);
  json["post_sampling_probs"] = sampling.logprobs_after_chain;
  json["grammar"] = options.constraint;
  json["samplers"] = Json::array();
  if (sampling.samplers.empty()) json["samplers"] = kAllStages;
  for (const std::string& name : sampling.samplers) json["samplers"].push_back(name);
  return json;
}

}  // namespace candor::serve::llama_cpp
