// The fields that Ollama's routes share.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/keep_alive.h"
#include "serve/core/request_terms.h"
#include "serve/ollama/requests.h"

namespace candor::serve::ollama {
namespace {

void read_format(Fields& fields, const ApiLimits& limits, ApiRequest& result, Request& request) {
  result.names.constraint = "format";
  const Json* format = fields.raw("format");
  if (format == nullptr || *format == "") return;
  if (*format == "json") {
    request.constraint = ConstraintSpec{.kind = GrammarKind::kJsonObject};
  } else if (format->is_object()) {
    request.constraint = ConstraintSpec{.kind = GrammarKind::kJsonSchema, .source = to_text(*format)};
  } else {
    return fields.refuse("format", fmt::format("format is {}, expected \"json\" or a JSON schema", shown(*format)));
  }
  request.constraint->is_strict = limits.is_strict;
}

void read_think(Fields& fields, const RequestTerms& terms, const std::string& model, Json& kwargs) {
  static constexpr std::array<std::string_view, 3> kLevels = {"low", "medium", "high"};
  const Json* think = fields.raw("think");
  if (think == nullptr || *think == "") return;
  const std::string level = think->is_string() ? think->get<std::string>() : "";
  if (!think->is_boolean() && std::ranges::find(kLevels, level) == kLevels.end()) {
    return fields.refuse("think", fmt::format("think is {}, expected true, false, low, medium or high", shown(*think)));
  }
  const bool is_wanted = *think != false;
  if (is_wanted && !terms.model_form().output.has_reasoning)
    return fields.refuse("think", fmt::format("\"{}\" does not support thinking", clipped(model)));
  kwargs["enable_thinking"] = is_wanted;
  if (!level.empty()) kwargs["reasoning_effort"] = level;
}

void read_logprobs(Fields& fields, SamplingParams& sampling) {
  const bool is_wanted = fields.boolean("logprobs").value_or(false);
  const auto n_top = fields.integer("top_logprobs", 0, kMaxLogprobs);
  if (n_top && *n_top > 0 && !is_wanted) fields.refuse("top_logprobs", "top_logprobs needs logprobs: true");
  if (is_wanted) sampling.logprobs = static_cast<int32_t>(n_top.value_or(0));
}

// Options that say how a model is run, which this server decided at its start.
void accept_machine_options(Fields& options, const ApiLimits& limits, std::vector<std::string>& warnings) {
  const auto n_ctx = options.integer("num_ctx", 0, std::numeric_limits<int64_t>::max());
  if (n_ctx && *n_ctx > limits.n_ctx)
    warnings.push_back(fmt::format("options.num_ctx is {}: the context here has {} tokens", *n_ctx, limits.n_ctx));
  if (const auto mode = options.integer("mirostat", 0, 2); mode && *mode > 0)
    options.refuse("mirostat", fmt::format("options.mirostat is {}: Mirostat is not offered, expected 0", *mode));
  options.accept({"num_batch", "num_gpu", "main_gpu", "num_thread", "numa", "use_mmap", "use_mlock", "low_vram",
                  "f16_kv", "vocab_only", "logits_all", "num_keep", "num_gqa", "mirostat_tau", "mirostat_eta"});
  if (options.number("tfs_z", 0, 1e9).value_or(1) != 1) warnings.push_back("options.tfs_z has no effect");
  if (options.boolean("penalize_newline") == false) warnings.push_back("options.penalize_newline has no effect");
}

}  // namespace

std::string read_model(Fields& fields, const ApiLimits& limits) {
  const auto older = fields.text("name");
  const auto given = fields.text("model");
  const std::string name = given ? *given : older.value_or("");
  if (name.empty()) {
    fields.refuse("model", "model is missing, expected the name of a model");
    return name;
  }
  if (!limits.knows(name)) {
    fields.refuse_with(fail(ErrorKind::kNotFound,
                            fmt::format("model '{}' not found: this server has '{}'", clipped(name), limits.model),
                            "model"));
  }
  return name;
}

std::optional<double> read_keep_alive(Fields& fields, const ApiLimits& limits, std::vector<std::string>& warnings) {
  const Json* value = fields.raw("keep_alive");
  if (value == nullptr || *value == "") return std::nullopt;
  const auto seconds = value->is_string()   ? parse_keep_alive(value->get_ref<const std::string&>())
                       : value->is_number() ? std::optional(value->get<double>())
                                            : std::nullopt;
  if (!seconds) {
    fields.refuse("keep_alive",
                  fmt::format("keep_alive is {}, expected seconds or a duration such as \"5m\"", shown(*value)));
  } else if (!limits.is_let_go) {
    warnings.push_back("keep_alive has no effect: the model of this server stays loaded");
  }
  return seconds;
}

SamplingParams read_options(Fields& fields, const ApiLimits& limits, ApiRequest& result) {
  static const std::pair<const char*, Json> kDefaults[] = {
      {"temperature", 0.8}, {"top_k", 40}, {"top_p", 0.9}, {"repeat_last_n", 64}};
  const Json* given = fields.object("options");
  Json merged = given == nullptr ? Json::object() : *given;
  const auto preset = merged.find("preset");
  const bool has_preset = preset != merged.end() && !preset->is_null();  // it gives all but the last
  for (const auto& [name, value] : kDefaults) {
    if (has_preset && std::string_view(name) != "repeat_last_n") continue;
    const auto it = merged.find(name);
    if (it != merged.end() && !it->is_null()) continue;
    merged[name] = value;
    result.note += fmt::format("{} {} {}", result.note.empty() ? "ollama's defaults:" : ",", name, to_text(value));
  }
  if (const auto seed = merged.find("seed"); seed != merged.end() && *seed == -1) merged.erase(seed);
  Fields options(merged, "options");
  SamplingParams sampling = read_sampling(options, std::nullopt, 1);
  const auto n_predict =
      options.integer("num_predict", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  if (n_predict && *n_predict > 0) sampling.max_tokens = n_predict;
  accept_machine_options(options, limits, result.warnings);
  settle_unknown(options, limits, result.warnings);
  if (options.fault()) fields.refuse_with(*options.fault());
  return sampling;
}

void read_common(Fields& fields, const RequestTerms& terms, ApiRequest& result, Request& request, Json& kwargs) {
  const ApiLimits& limits = terms.limits();
  result.model = read_model(fields, limits);
  result.stream = fields.boolean("stream").value_or(true);
  request.sampling = read_options(fields, limits, result);
  read_logprobs(fields, request.sampling);
  read_format(fields, limits, result, request);
  read_think(fields, terms, result.model, kwargs);
  result.keep_alive = read_keep_alive(fields, limits, result.warnings);
  if (fields.boolean("truncate").value_or(false)) request.max_prompt_tokens = std::max<int64_t>(1, limits.n_ctx - 1);
  request.receipt = read_receipt(fields);
  if (fields.boolean("shift").value_or(false)) request.on_context_full = OnContextFull::kCrop;
}

}  // namespace candor::serve::ollama
