// The parameters of sampling, under the names that llama.cpp's and vLLM's clients send. Ranges that depend on
// each other are the engine's to check.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "candor/presets.h"
#include "candor/request.h"
#include "candor/sampling_table.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"

namespace candor::serve {
namespace {

constexpr int64_t kMaxField = std::numeric_limits<int32_t>::max();

// A count below what the sampler takes is one more way to write its least: top_k -1 is 0, off.
void read_number(Fields& fields, const SamplingNumber& number, std::string_view name, SamplingParams& sampling) {
  const std::string field(name);
  if (const auto* count = std::get_if<int64_t SamplingParams::*>(&number.member)) {
    const auto value = fields.integer(field.c_str(), static_cast<int64_t>(number.api_least),
                                      static_cast<int64_t>(number.api_most));
    if (value) sampling.**count = std::max(*value, static_cast<int64_t>(number.least));
  } else if (const auto value = fields.number(field.c_str(), number.api_least, number.api_most)) {
    sampling.*std::get<double SamplingParams::*>(number.member) = *value;
  }
}

// Of two spellings the name itself counts.
void read_numbers(Fields& fields, SamplingParams& sampling) {
  for (const SamplingNumber& number : kSamplingNumbers) {
    if (!number.other_field.empty()) read_number(fields, number, number.other_field, sampling);
    read_number(fields, number, number.name, sampling);
  }
}

// The numbers that a purpose begins with; those that the request names itself come after.
void read_preset(Fields& fields, SamplingParams& sampling) {
  const auto name = fields.text("preset");
  if (!name) return;
  if (const auto applied = apply_preset(*name, sampling); !applied) fields.refuse("preset", applied.error().message);
}

bool read_texts(Fields& fields, const char* name, std::vector<std::string>& texts) {
  const Json* list = fields.array(name);
  if (list == nullptr) return false;
  texts.clear();
  for (const Json& item : *list) {
    if (item.is_string()) {
      texts.push_back(item.get<std::string>());
    } else {
      fields.refuse(name, fmt::format("{} holds {}, expected strings", name, shown(item)));
    }
  }
  return true;
}

// -100 bans.
void add_bias(Fields& fields, LogitBias bias, const std::string& key, const Json& value, SamplingParams& sampling) {
  if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100)) {
    return fields.refuse("logit_bias",
                         fmt::format("logit_bias[{}] is {}, expected a number from -100 to 100", key, shown(value)));
  }
  bias.bias = value.get<double>();
  bias.ban = bias.bias == -100;
  sampling.logit_bias.push_back(std::move(bias));
}

// {"1234": -100}: ids as text, which is what JSON's keys are.
void read_bias_map(Fields& fields, const Json& map, SamplingParams& sampling) {
  for (const auto& [key, value] : map.items()) {
    LogitBias bias;
    const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), bias.token);
    if (status != std::errc() || end != key.data() + key.size() || bias.token < 0) {
      return fields.refuse("logit_bias",
                           fmt::format("logit_bias has the key {}, expected a token id; texts go in pairs, "
                                       "[[\"text\", 5]]",
                                       shown(Json(key))));
    }
    add_bias(fields, bias, key, value, sampling);
  }
}

// [[1234, -100], ["a text, every token of it", 5], ["another", false]], as llama.cpp has it; false bans.
void read_bias_pairs(Fields& fields, const Json& pairs, SamplingParams& sampling) {
  for (const Json& pair : pairs) {
    const bool is_pair = pair.is_array() && pair.size() == 2;
    const bool is_id = is_pair && pair[0].is_number_unsigned() && pair[0].get<uint64_t>() <= uint64_t{kMaxField};
    const bool is_text = is_pair && pair[0].is_string() && !pair[0].get_ref<const std::string&>().empty();
    if (!is_id && !is_text) {
      return fields.refuse("logit_bias", fmt::format("logit_bias holds {}, expected pairs: [token id or text, number]",
                                                     shown(is_pair ? pair[0] : pair)));
    }
    LogitBias bias;
    if (is_id) bias.token = pair[0].get<TokenId>();
    if (is_text) bias.text = pair[0].get<std::string>();
    add_bias(fields, std::move(bias), shown(pair[0]), pair[1] == false ? Json(-100) : pair[1], sampling);
  }
}

void read_logit_bias(Fields& fields, SamplingParams& sampling) {
  const Json* biases = fields.raw("logit_bias");
  if (biases == nullptr) return;
  if (biases->is_object()) return read_bias_map(fields, *biases, sampling);
  if (biases->is_array()) return read_bias_pairs(fields, *biases, sampling);
  fields.refuse("logit_bias", fmt::format("logit_bias is {}, expected an object or an array of pairs", shown(*biases)));
}

void read_allowed_ids(Fields& fields, SamplingParams& sampling) {
  const Json* ids = fields.array("allowed_token_ids");
  if (ids == nullptr) return;
  for (const Json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > static_cast<uint64_t>(kMaxField)) {
      return fields.refuse("allowed_token_ids",
                           fmt::format("allowed_token_ids holds {}, expected token ids", shown(id)));
    }
    sampling.allowed_token_ids.push_back(id.get<TokenId>());
  }
}

}  // namespace

void read_sampler(Fields& fields, SamplingParams& sampling) {
  read_preset(fields, sampling);
  read_numbers(fields, sampling);
  read_texts(fields, "samplers", sampling.samplers);
  read_texts(fields, "bad_words", sampling.bad_words);
  read_texts(fields, "dry_sequence_breakers", sampling.dry_sequence_breakers);
  sampling.logprobs_after_chain = fields.boolean("post_sampling_probs").value_or(false);
  sampling.explain = fields.boolean("explain").value_or(false);
  sampling.attention = fields.boolean("attention").value_or(false);
  sampling.speculate = fields.boolean("speculate").value_or(true);
  read_logit_bias(fields, sampling);
  read_allowed_ids(fields, sampling);
}

}  // namespace candor::serve
