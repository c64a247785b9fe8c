#include "apps/options/sampling_options.h"

#include <charconv>
#include <limits>

#include "apps/options/arguments.h"
#include "sample/params.h"

namespace candor::apps {
namespace {

struct RealOption {
  const char* field;
  const char* flags;
  double SamplingParams::*member;
  const char* help;
};
struct CountOption {
  const char* field;
  const char* flags;
  std::int64_t SamplingParams::*member;
  const char* help;
};

using P = SamplingParams;
constexpr RealOption kReals[] = {
    {"temperature", "--temperature,--temp", &P::temperature, "0 = the most likely token"},
    {"dynatemp_range", "--dynatemp-range", &P::dynatemp_range, "the temperature varies by X with certainty"},
    {"dynatemp_exponent", "--dynatemp-exponent", &P::dynatemp_exponent, "how it varies"},
    {"top_p", "--top-p", &P::top_p, "draw from the share P (1 = all)"},
    {"min_p", "--min-p", &P::min_p, "drop what is below P x the top (0 = none)"},
    {"typical_p", "--typical-p", &P::typical_p, "draw from the share nearest to the entropy"},
    {"xtc_probability", "--xtc-probability", &P::xtc_probability, "chance to drop the top choices"},
    {"xtc_threshold", "--xtc-threshold", &P::xtc_threshold, "probability of a top choice"},
    {"repetition_penalty", "--repetition-penalty,--repeat-penalty", &P::repetition_penalty, "divide what stands there"},
    {"frequency_penalty", "--frequency-penalty", &P::frequency_penalty, "subtract X for each time said"},
    {"presence_penalty", "--presence-penalty", &P::presence_penalty, "subtract X for what was said"},
    {"dry_multiplier", "--dry-multiplier", &P::dry_multiplier, "lower what goes on with a repetition"},
    {"dry_base", "--dry-base", &P::dry_base, "times X for each token repeated"},
};
constexpr CountOption kCounts[] = {
    {"top_k", "--top-k", &P::top_k, "draw from the K most likely (0 = all)"},
    {"repeat_last_n", "--repeat-last-n", &P::repeat_last_n, "penalties see the last N tokens (-1 = all)"},
    {"dry_allowed_length", "--dry-allowed-length", &P::dry_allowed_length, "repeated tokens that are free"},
    {"dry_penalty_last_n", "--dry-penalty-last-n", &P::dry_penalty_last_n, "DRY sees the last N tokens"},
    {"no_repeat_ngram_size", "--no-repeat-ngram-size", &P::no_repeat_ngram_size, "no N tokens twice"},
    {"min_tokens", "--min-tokens", &P::min_tokens, "no end before N tokens"},
};

void add_list(CLI::App& command, const char* flag, std::vector<std::string>& target, const char* type,
              const char* help) {
  command.add_option(flag, target, help)->type_name(type)->expected(1)->take_all();
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size();
}

// What cannot be a bias becomes one that the engine refuses by name.
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

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    parts.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

void add_sampling_options(CLI::App& command, SamplingOptions& o) {
  for (const RealOption& option : kReals) {
    const sample::NumberRange& range = *sample::find_range(option.field);
    auto& slot = o.reals.emplace_back(option.member, std::nullopt);
    add_number(command, option.flags, slot.second, range.min, range.max, option.help);
  }
  for (const CountOption& option : kCounts) {
    const sample::NumberRange& range = *sample::find_range(option.field);
    auto& slot = o.counts.emplace_back(option.member, std::nullopt);
    add_int(command, option.flags, slot.second, static_cast<int64_t>(range.min), static_cast<int64_t>(range.max),
            option.help);
  }
  add_list(command, "--logit-bias", o.logit_bias, "ID=X", "ID or TEXT, = a number added or ban; may be repeated");
  add_list(command, "--bad-word", o.bad_words, "TEXT", "never written; may be repeated");
  add_list(command, "--dry-sequence-breaker", o.dry_breakers, "TEXT", "ends a repetition; may be repeated");
  command.add_option("--allowed-token-id", o.allowed_ids, "only these ids; may be repeated")
      ->type_name("ID")
      ->expected(1)
      ->take_all();
  command.add_option("--samplers", o.samplers, "order of the stages: penalties,dry,temperature,top_k,...")
      ->type_name("NAMES");
}

void apply_sampling_options(const SamplingOptions& o, SamplingParams& params) {
  for (const auto& [member, value] : o.reals) {
    if (value) params.*member = *value;
  }
  for (const auto& [member, value] : o.counts) {
    if (value) params.*member = *value;
  }
  for (const std::string& text : o.logit_bias) params.logit_bias.push_back(parse_bias(text));
  params.bad_words = o.bad_words;
  if (!o.dry_breakers.empty()) params.dry_sequence_breakers = o.dry_breakers;
  for (const int64_t id : o.allowed_ids) {
    const bool fits = id >= 0 && id <= std::numeric_limits<int32_t>::max();
    params.allowed_token_ids.push_back(fits ? static_cast<TokenId>(id) : -1);
  }
  params.samplers = split_names(o.samplers);
}

}  // namespace candor::apps
