// The fields that several interfaces share.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/http/message.h"

namespace candor::serve {
namespace {

constexpr int64_t kMaxSeed = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

void read_stop(Fields& fields, SamplingParams& sampling) {
  const Json* stop = fields.raw("stop");
  if (stop == nullptr) return;
  if (stop->is_string()) {
    sampling.stop.push_back(stop->get<std::string>());
    return;
  }
  if (!stop->is_array() || stop->size() > kMaxStopStrings) {
    return fields.refuse("stop", fmt::format("stop is {}, expected a string or an array of at most {} strings",
                                             shown(*stop), kMaxStopStrings));
  }
  for (const Json& item : *stop) {
    if (!item.is_string()) return fields.refuse("stop", fmt::format("stop holds {}, expected strings", shown(item)));
    sampling.stop.push_back(item.get<std::string>());
  }
}

void read_stop_ids(Fields& fields, SamplingParams& sampling) {
  const Json* ids = fields.array("stop_token_ids");
  if (ids == nullptr) return;
  for (const Json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > static_cast<uint64_t>(kMaxInt)) {
      return fields.refuse("stop_token_ids", fmt::format("stop_token_ids holds {}, expected token ids", shown(id)));
    }
    sampling.stop_ids.push_back(id.get<TokenId>());
  }
}

void read_stop_scope(Fields& fields, SamplingParams& sampling) {
  const auto scope = fields.text("stop_scope");
  if (!scope || *scope == "both") return;
  if (*scope == "content") {
    sampling.stop_scope = StopScope::kContent;
  } else if (*scope == "reasoning") {
    sampling.stop_scope = StopScope::kReasoning;
  } else {
    fields.refuse("stop_scope",
                  fmt::format("stop_scope is {}, expected both, content or reasoning", shown(Json(*scope))));
  }
}

void read_max_tokens(Fields& fields, std::optional<int64_t> fallback, int64_t least, SamplingParams& sampling) {
  sampling.max_tokens = fallback;
  for (const char* name : {"n_predict", "max_tokens", "max_completion_tokens"}) {
    if (const auto value = fields.integer(name, least, std::numeric_limits<int64_t>::max()))
      sampling.max_tokens = value;
  }
}

}  // namespace

SamplingParams read_sampling(Fields& fields, std::optional<int64_t> default_max_tokens, int64_t least_max_tokens) {
  SamplingParams sampling;
  if (const auto seed = fields.integer("seed", std::numeric_limits<int64_t>::min(), kMaxSeed)) {
    sampling.seed = static_cast<uint64_t>(*seed);
  }
  sampling.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  read_max_tokens(fields, default_max_tokens, least_max_tokens, sampling);
  read_stop(fields, sampling);
  read_stop_ids(fields, sampling);
  read_stop_scope(fields, sampling);
  read_sampler(fields, sampling);
  return sampling;
}

Scheduling read_scheduling(Fields& fields) {
  Scheduling scheduling;
  scheduling.priority = static_cast<int32_t>(-fields.integer("priority", -kMaxPriority, kMaxPriority).value_or(0));
  scheduling.deadline_ms = fields.number("t_max_ms", 0, 1e9).value_or(0.0);
  scheduling.cache_scope = fields.text("cache_salt").value_or("");
  return scheduling;
}

bool read_receipt(Fields& fields) {
  return fields.boolean("receipt").value_or(false);
}

void read_truncation(Fields& fields, const ApiLimits& limits, Request& request) {
  const auto kept = fields.integer("truncate_prompt_tokens", -1, kMaxInt);
  if (!kept) return;
  if (*kept == 0)
    return fields.refuse("truncate_prompt_tokens", "truncate_prompt_tokens is 0, expected -1 or at least 1");
  request.max_prompt_tokens = *kept > 0 ? *kept : std::max<int64_t>(1, limits.n_ctx - 1);
}

namespace {

void warn_of_idle(const Fields& fields, std::initializer_list<const char*> names, std::string_view why,
                  std::vector<std::string>& warnings) {
  for (const char* name : names) {
    if (fields.has(name)) warnings.push_back(fmt::format("{} has no effect: {}", name, why));
  }
}

}  // namespace

void read_beams(Fields& fields, std::optional<int64_t> best_of, Request& request, std::vector<std::string>& warnings) {
  constexpr double kMostPenalty = 10;
  const bool is_wanted = fields.boolean("use_beam_search").value_or(false);
  const auto penalty = fields.number("length_penalty", -kMostPenalty, kMostPenalty);
  const auto stops_early = fields.boolean("early_stopping");
  if (!is_wanted) {
    return warn_of_idle(fields, {"length_penalty", "early_stopping"}, "use_beam_search is not asked for", warnings);
  }
  const char* const why = "a beam search draws nothing";
  if (request.sampling.temperature > 0) warn_of_idle(fields, {"temperature"}, why, warnings);
  warn_of_idle(fields, {"dynatemp_range", "top_k", "typical_p", "top_p", "min_p", "xtc_probability"}, why, warnings);
  if (best_of && *best_of < request.n) {
    return fields.refuse("best_of",
                         fmt::format("best_of is {}, expected at least n ({}): so many beams", *best_of, request.n));
  }
  const int64_t width = best_of.value_or(request.n);
  if (width > kMaxBeams) return fields.refuse("n", fmt::format("n is {}, expected at most {} beams", width, kMaxBeams));
  BeamSearch& beams = request.beams.emplace();
  beams.width = static_cast<int32_t>(width);
  beams.length_penalty = penalty.value_or(beams.length_penalty);
  beams.early_stopping = stops_early.value_or(false);
}

Error model_not_found(const std::string& model) {
  return {.kind = ErrorKind::kNotFound,
          .message =
              fmt::format("the model \"{}\" does not exist here; GET /v1/models lists those that do", clipped(model)),
          .field = "model"};
}

std::string_view untagged(std::string_view name) {
  constexpr std::string_view kLatest = ":latest";
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  return name;
}

bool ApiLimits::knows(const std::string& name) const {
  const auto is_base = [this](const std::string& base) { return is_model(base); };
  return is_model(name) || (adapters != nullptr && adapters->named_by(untagged(name), is_base));
}

std::vector<RequestAdapter> read_adapters(Fields& fields, const ApiLimits& limits) {
  if (limits.adapters == nullptr) return {};
  auto named = limits.adapters->read(fields);
  return named ? std::move(*named) : limits.adapters->defaults();
}

bool ApiLimits::is_model(const std::string& name) const {
  const auto is_it = [&name](const std::string& own) { return untagged(own) == untagged(name); };
  return is_it(model) || std::ranges::any_of(aliases, is_it) || (is_also && is_also(name));
}

void check_model(Fields& fields, const ApiLimits& limits, std::string& model) {
  model = fields.text("model").value_or("");
  if (model.empty()) model = limits.model;
  if (limits.knows(model)) return;
  fields.refuse_with(model_not_found(model));
}

void settle_unknown(Fields& fields, const ApiLimits& limits, std::vector<std::string>& warnings) {
  constexpr size_t kMostNamed = 32;
  const std::vector<std::string> names = fields.unknown();
  for (size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    const std::string words = fmt::format("{} is not known here and has no effect", shown(Json(names[i])));
    if (limits.is_strict) return fields.refuse(names[i].c_str(), words);
    warnings.push_back(words);
  }
  if (names.size() > kMostNamed)
    warnings.push_back(fmt::format("and {} further unknown fields", names.size() - kMostNamed));
}

void add_warnings_header(const std::vector<std::string>& warnings, http::Headers& headers) {
  constexpr size_t kMostBytes = 4096;
  const auto ascii = [](const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); };
  Json named = Json::array();
  size_t n_bytes = 0;
  for (const std::string& warning : warnings) {
    n_bytes += ascii(Json(warning)).size() + 1;
    if (n_bytes > kMostBytes) break;
    named.push_back(warning);
  }
  if (!named.empty()) headers.emplace_back("x-candor-warnings", ascii(named));
}

Error with_api_field(Error error, const FieldNames& names) {
  if (error.field == "prompt") error.field = names.prompt;
  if (error.field == "constraint") error.field = names.constraint;
  return error;
}

}  // namespace candor::serve
