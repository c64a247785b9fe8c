#include "apps/options/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string_view>
#include <system_error>
#include <variant>

#include "apps/options/arguments.h"
#include "apps/options/typed_numbers.h"
#include "candor/sampling_table.h"
#include "sample/params.h"

namespace candor::apps {
namespace {

// "--dry-base"; with the second spelling, where there is one, behind a comma.
std::string flags_of(const SamplingNumber& number) {
  std::string flags = "--" + std::string(number.name);
  std::ranges::replace(flags, '_', '-');
  if (!number.other_option.empty()) flags += "," + std::string(number.other_option);
  return flags;
}

void add_list(CLI::App& command, const char* flag, std::vector<std::string>& target, const char* type,
              const char* help) {
  command.add_option(flag, target, help)->type_name(type)->expected(1)->take_all();
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size();
}

}  // namespace

LogitBias parse_bias(const std::string& text) {
  LogitBias bias;
  const size_t equals = text.rfind('=');
  const std::string_view what = std::string_view(text).substr(0, equals);
  const std::string_view value = equals == std::string::npos ? "" : std::string_view(text).substr(equals + 1);
  bias.ban = value == "ban";
  if (!bias.ban && !parse_number(value, bias.bias)) bias.bias = std::numeric_limits<double>::quiet_NaN();
  if (!parse_number(what, bias.token)) bias.text = what;
  return bias;
}

Result<void> check_sampling(const SamplingParams& params) {
  const auto chain = sample::make_chain_params(params);
  return chain ? Result<void>() : chain.error();
}

void add_sampling_numbers(CLI::App& command, SamplingOptions& o, const SamplingParams& defaults) {
  for (const SamplingNumber& number : kSamplingNumbers) {
    const std::string help(number.help);
    if (const auto* count = std::get_if<std::int64_t SamplingParams::*>(&number.member)) {
      auto& slot = o.counts.emplace_back(*count, std::nullopt);
      add_int(command, flags_of(number), slot.second, static_cast<int64_t>(number.least),
              static_cast<int64_t>(number.most), help)
          ->default_str(fmt::format("{}", defaults.**count));
    } else {
      auto& slot = o.reals.emplace_back(std::get<double SamplingParams::*>(number.member), std::nullopt);
      add_number(command, flags_of(number), slot.second, number.least, number.most, help)
          ->default_str(fmt::format("{:g}", value_of(number, defaults)));
    }
  }
  add_list(command, "--logit-bias", o.logit_bias, "ID=X", "ID or TEXT, = a number added or ban; may be repeated");
  command.add_option("--samplers", o.samplers, "order of the stages: penalties,dry,temperature,top_k,...")
      ->type_name("NAMES");
}

void add_sampling_options(CLI::App& command, SamplingOptions& o, const SamplingParams& defaults) {
  add_sampling_numbers(command, o, defaults);
  add_list(command, "--bad-word", o.bad_words, "TEXT", "never written; may be repeated");
  add_list(command, "--dry-sequence-breaker", o.dry_breakers, "TEXT", "ends a repetition; may be repeated");
  command.add_option("--allowed-token-id", o.allowed_ids, "only these ids; may be repeated")
      ->type_name("ID")
      ->expected(1)
      ->take_all();
}

void apply_sampling_options(const SamplingOptions& o, SamplingParams& params) {
  for (const auto& [member, value] : o.reals) {
    if (value) params.*member = *value;
  }
  for (const auto& [member, value] : o.counts) {
    if (value) params.*member = *value;
  }
  for (const std::string& text : o.logit_bias) params.logit_bias.push_back(parse_bias(text));
  if (!o.bad_words.empty()) params.bad_words = o.bad_words;
  if (!o.dry_breakers.empty()) params.dry_sequence_breakers = o.dry_breakers;
  for (const int64_t id : o.allowed_ids) {
    const bool fits = id >= 0 && id <= std::numeric_limits<int32_t>::max();
    params.allowed_token_ids.push_back(fits ? static_cast<TokenId>(id) : -1);
  }
  if (!o.samplers.empty()) params.samplers = split_at_commas(o.samplers);
}

}  // namespace candor::apps
