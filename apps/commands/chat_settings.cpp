#include "apps/commands/chat_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "apps/options/sampling_options.h"
#include "apps/options/typed_numbers.h"
#include "candor/presets.h"
#include "candor/request.h"
#include "candor/sampling_table.h"

namespace candor::apps {
namespace {

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

// Empty, or what is wrong.
using Verdict = std::string;

Verdict read_number(std::string_view text, double least, double most, double& target) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < least ||
      value > most)
    return fmt::format("\"{}\" is not a number from {} to {}\n", text, least, most);
  target = value;
  return "";
}

Verdict read_count(std::string_view text, int64_t least, int64_t most, int64_t& target) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return fmt::format("\"{}\" is not a whole number from {} to {}\n", text, least, most);
  target = value;
  return "";
}

// "none" empties what is optional, or a list.
bool is_none(std::string_view value) {
  return value == "none";
}

Verdict set_seed(std::string_view value, ChatState& state) {
  if (is_none(value)) return state.sampling.seed.reset(), "";
  int64_t seed = 0;
  Verdict wrong = read_count(value, 0, std::numeric_limits<int64_t>::max(), seed);
  if (wrong.empty()) state.sampling.seed = static_cast<uint64_t>(seed);
  return wrong;
}

Verdict set_max_tokens(std::string_view value, ChatState& state) {
  if (is_none(value)) return state.sampling.max_tokens.reset(), "";
  int64_t n = 0;
  Verdict wrong = read_count(value, 1, kMostTokens, n);
  if (wrong.empty()) state.sampling.max_tokens = n;
  return wrong;
}

Verdict set_logprobs(std::string_view value, ChatState& state) {
  int64_t n = -1;
  Verdict wrong = is_none(value) ? "" : read_count(value, 0, kMaxLogprobs, n);
  if (wrong.empty()) state.sampling.logprobs = static_cast<int32_t>(n);
  return wrong;
}

Verdict set_answers(std::string_view value, ChatState& state) {
  int64_t n = 1;
  Verdict wrong = read_count(value, 1, kMostChatAnswers, n);
  if (wrong.empty()) state.n_answers = static_cast<int32_t>(n);
  return wrong;
}

Verdict set_preset(std::string_view value, ChatState& state) {
  const auto applied = apply_preset(value, state.sampling);
  return applied ? "" : applied.error().message + "\n";
}

Verdict set_samplers(std::string_view value, ChatState& state) {
  SamplingParams tried = state.sampling;
  tried.samplers = is_none(value) ? std::vector<std::string>() : split_at_commas(std::string(value));
  if (const auto fine = check_sampling(tried); !fine) return fine.error().message + "\n";
  state.sampling = std::move(tried);
  return "";
}

// A list grows by what is set, and "none" empties it.
template <class T>
Verdict grow(std::vector<T>& list, std::string_view value, T item) {
  if (is_none(value)) return list.clear(), "";
  if (list.size() >= kMaxStopStrings)
    return fmt::format("at most {} of them; none empties the list\n", kMaxStopStrings);
  list.push_back(std::move(item));
  return "";
}

Verdict set_stop(std::string_view value, ChatState& state) {
  return grow(state.sampling.stop, value, std::string(value));
}
Verdict set_bad_word(std::string_view value, ChatState& state) {
  return grow(state.sampling.bad_words, value, std::string(value));
}
Verdict set_breaker(std::string_view value, ChatState& state) {
  return grow(state.sampling.dry_sequence_breakers, value, std::string(value));
}
Verdict set_bias(std::string_view value, ChatState& state) {
  const LogitBias bias = parse_bias(std::string(value));
  if (!is_none(value) && !bias.ban && !(std::abs(bias.bias) <= 100))
    return fmt::format("\"{}\" is no bias, expected ID=X or TEXT=X with X from -100 to 100, or ID=ban\n", value);
  return grow(state.sampling.logit_bias, value, bias);
}

Verdict set_id(std::string_view value, std::vector<TokenId>& list) {
  int64_t id = 0;
  if (!is_none(value)) {
    Verdict wrong = read_count(value, 0, kMostTokens, id);
    if (!wrong.empty()) return wrong;
  }
  return grow(list, value, static_cast<TokenId>(id));
}
Verdict set_stop_token(std::string_view value, ChatState& state) {
  return set_id(value, state.sampling.stop_ids);
}
Verdict set_allowed(std::string_view value, ChatState& state) {
  return set_id(value, state.sampling.allowed_token_ids);
}

Verdict set_ignore_eos(std::string_view value, ChatState& state) {
  if (value != "on" && value != "off") return fmt::format("\"{}\" is neither on nor off\n", value);
  state.sampling.ignore_eos = value == "on";
  return "";
}

Verdict set_on_context_full(std::string_view value, ChatState& state) {
  if (value != "stop" && value != "crop") return fmt::format("\"{}\" is neither stop nor crop\n", value);
  state.on_context_full = value == "crop" ? OnContextFull::kCrop : OnContextFull::kStop;
  return "";
}

Verdict set_stop_scope(std::string_view value, ChatState& state) {
  constexpr std::string_view kNames[] = {"both", "content", "reasoning"};
  const auto it = std::ranges::find(kNames, value);
  if (it == std::end(kNames)) return fmt::format("\"{}\" is none of both, content, reasoning\n", value);
  state.sampling.stop_scope = static_cast<StopScope>(it - std::begin(kNames));
  return "";
}

struct Setting {
  std::string_view name;
  Verdict (*set)(std::string_view value, ChatState& state);
};

// Besides the numbers of the table.
constexpr Setting kSettings[] = {
    {"seed", set_seed},
    {"max_tokens", set_max_tokens},
    {"preset", set_preset},
    {"samplers", set_samplers},
    {"stop", set_stop},
    {"stop_token", set_stop_token},
    {"stop_scope", set_stop_scope},
    {"logit_bias", set_bias},
    {"bad_word", set_bad_word},
    {"allowed_token_id", set_allowed},
    {"dry_sequence_breaker", set_breaker},
    {"ignore_eos", set_ignore_eos},
    {"on_context_full", set_on_context_full},
    {"answers", set_answers},
    {"logprobs", set_logprobs},
};

std::string all_names() {
  std::string names;
  for (const SamplingNumber& number : kSamplingNumbers) names += std::string(number.name) + ", ";
  for (const Setting& setting : kSettings)
    names += std::string(setting.name) + (&setting == std::end(kSettings) - 1 ? "" : ", ");
  return names;
}

Verdict set_table_number(const SamplingNumber& number, std::string_view value, SamplingParams& sampling) {
  SamplingParams tried = sampling;
  const auto* count = std::get_if<std::int64_t SamplingParams::*>(&number.member);
  Verdict wrong = count != nullptr ? read_count(value, static_cast<int64_t>(number.least),
                                                static_cast<int64_t>(number.most), tried.**count)
                                   : read_number(value, number.least, number.most,
                                                 tried.*std::get<double SamplingParams::*>(number.member));
  if (!wrong.empty()) return wrong;
  if (const auto fine = check_sampling(tried); !fine) return fine.error().message + "\n";
  sampling = std::move(tried);
  return "";
}

Verdict set_value(std::string name, std::string_view value, ChatState& state) {
  std::ranges::replace(name, '-', '_');
  if (const SamplingNumber* number = find_sampling_number(name))
    return set_table_number(*number, value, state.sampling);
  const auto it = std::ranges::find(kSettings, std::string_view(name), &Setting::name);
  if (it != std::end(kSettings)) return it->set(value, state);
  return fmt::format("nothing is called \"{}\": {}\n", name, all_names());
}

std::string listed(const char* name, const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += fmt::format("{} \"{}\"", out.empty() ? "" : ",", text);
  return out.empty() ? "" : fmt::format(", {}{}", name, out);
}

// The usual ones, and what else is not as it begins.
std::string describe(const ChatState& state) {
  const SamplingParams& p = state.sampling;
  const SamplingParams usual;
  std::string out =
      fmt::format("temperature {}, top_k {}, top_p {}, min_p {}", p.temperature, p.top_k, p.top_p, p.min_p);
  for (const SamplingNumber& number : kSamplingNumbers) {
    if (value_of(number, p) == value_of(number, usual) || out.find(std::string(number.name) + " ") != std::string::npos)
      continue;
    out += fmt::format(", {} {:g}", number.name, value_of(number, p));
  }
  out += fmt::format(", seed {}, max_tokens {}", p.seed ? std::to_string(*p.seed) : "new each time",
                     p.max_tokens ? std::to_string(*p.max_tokens) : "until the end");
  if (p.dry_sequence_breakers != usual.dry_sequence_breakers)
    out += listed("dry_sequence_breaker", p.dry_sequence_breakers);
  out += listed("samplers", p.samplers) + listed("stop", p.stop) + listed("bad_word", p.bad_words);
  if (!p.stop_ids.empty()) out += fmt::format(", {} stop tokens", p.stop_ids.size());
  if (!p.logit_bias.empty()) out += fmt::format(", {} biases", p.logit_bias.size());
  if (!p.allowed_token_ids.empty()) out += fmt::format(", {} allowed ids", p.allowed_token_ids.size());
  if (p.stop_scope != StopScope::kBoth)
    out += fmt::format(", stop_scope {}", p.stop_scope == StopScope::kContent ? "content" : "reasoning");
  if (p.ignore_eos) out += ", ignore_eos on";
  if (state.on_context_full == OnContextFull::kCrop) out += ", on_context_full crop";
  if (p.logprobs >= 0) out += fmt::format(", logprobs {}", p.logprobs);
  return out + (state.n_answers > 1 ? fmt::format(", answers {}\n", state.n_answers) : "\n");
}

}  // namespace

std::string run_set(std::string_view arguments, ChatState& state) {
  if (arguments.empty()) return describe(state);
  const size_t space = arguments.find_first_of(" =");
  const std::string name(arguments.substr(0, space));
  if (space == std::string_view::npos || space + 1 >= arguments.size())
    return fmt::format("/set {} VALUE; there are {}\n", name, all_names());
  const Verdict wrong = set_value(name, arguments.substr(space + 1), state);
  return wrong.empty() ? describe(state) : wrong;
}

}  // namespace candor::apps
