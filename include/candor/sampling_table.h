#pragma once
// Every number that says how a token is chosen, once. The engine's checks, the command line's options, the server's
// fields and the table in docs/server.md are made from it: a new one is a member of SamplingParams, a row here, and its
// stage. Lists (bias, bans, stops) are not in it, nor what a request wants besides its tokens.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <variant>

#include "candor/request.h"

namespace candor {

struct SamplingNumber {
  std::string_view name;  // as SamplingParams and JSON have it; an option is the same with dashes
  std::variant<double SamplingParams::*, std::int64_t SamplingParams::*> member;
  double least;
  double most;
  std::string_view note{};          // what a value at the border means, for messages: "0 = off"
  std::string_view help{};          // what it does, for people
  std::string_view other_field{};   // a second spelling in JSON; where both are given, the name counts
  std::string_view other_option{};  // a second option, with its dashes
  double api_least = least;         // what the server takes where that is the contract of other servers
  double api_most = most;
};

namespace sampling_table {
using P = SamplingParams;
inline constexpr double kMostTokens = 2147483647.0;

inline constexpr SamplingNumber kSamplingNumbers[] = {
    {.name = "temperature", .member = &P::temperature, .least = 0, .most = 100, .note = "0 = greedy",
     .help = "0 = the most likely token", .other_option = "--temp", .api_most = 2},
    {.name = "dynatemp_range", .member = &P::dynatemp_range, .least = 0, .most = 100, .note = "0 = off",
     .help = "the temperature varies by X with certainty"},
    {.name = "dynatemp_exponent", .member = &P::dynatemp_exponent, .least = 0.01, .most = 100,
     .help = "how it varies"},
    {.name = "top_k", .member = &P::top_k, .least = 0, .most = kMostTokens, .note = "0 = off",
     .help = "draw from the K most likely (0 = all)", .api_least = -1},
    {.name = "typical_p", .member = &P::typical_p, .least = 0, .most = 1, .note = "1 = off",
     .help = "draw from the share nearest to the entropy"},
    {.name = "top_p", .member = &P::top_p, .least = 0, .most = 1, .note = "1 = off",
     .help = "draw from the share P (1 = all)"},
    {.name = "min_p", .member = &P::min_p, .least = 0, .most = 1, .note = "0 = off",
     .help = "drop what is below P x the top (0 = none)"},
    {.name = "xtc_probability", .member = &P::xtc_probability, .least = 0, .most = 1, .note = "0 = off",
     .help = "chance to drop the top choices"},
    {.name = "xtc_threshold", .member = &P::xtc_threshold, .least = 0, .most = 1,
     .help = "probability of a top choice"},
    {.name = "repetition_penalty", .member = &P::repetition_penalty, .least = 0.01, .most = 100, .note = "1 = off",
     .help = "divide what stands there", .other_field = "repeat_penalty", .other_option = "--repeat-penalty"},
    {.name = "frequency_penalty", .member = &P::frequency_penalty, .least = -2, .most = 2, .note = "0 = off",
     .help = "subtract X for each time said"},
    {.name = "presence_penalty", .member = &P::presence_penalty, .least = -2, .most = 2, .note = "0 = off",
     .help = "subtract X for what was said"},
    {.name = "repeat_last_n", .member = &P::repeat_last_n, .least = -1, .most = kMostTokens,
     .note = "-1 = the whole text, 0 = off", .help = "penalties see the last N tokens (-1 = all)"},
    {.name = "dry_multiplier", .member = &P::dry_multiplier, .least = 0, .most = 100, .note = "0 = off",
     .help = "lower what goes on with a repetition"},
    {.name = "dry_base", .member = &P::dry_base, .least = 1, .most = 10, .help = "times X for each token repeated"},
    {.name = "dry_allowed_length", .member = &P::dry_allowed_length, .least = 1, .most = kMostTokens,
     .help = "repeated tokens that are free"},
    {.name = "dry_penalty_last_n", .member = &P::dry_penalty_last_n, .least = -1, .most = kMostTokens,
     .note = "-1 = the whole text, 0 = off", .help = "DRY sees the last N tokens"},
    {.name = "no_repeat_ngram_size", .member = &P::no_repeat_ngram_size, .least = 0, .most = kMostTokens,
     .note = "0 = off", .help = "no N tokens twice"},
    {.name = "min_tokens", .member = &P::min_tokens, .least = 0, .most = kMostTokens, .help = "no end before N tokens",
     .other_field = "min_new_tokens"},
};
}  // namespace sampling_table
using sampling_table::kSamplingNumbers;

// nullptr for a name that is none.
constexpr const SamplingNumber* find_sampling_number(std::string_view name) {
  const auto it = std::ranges::find(kSamplingNumbers, name, &SamplingNumber::name);
  return it == std::end(kSamplingNumbers) ? nullptr : &*it;
}

// Its value as a double, whatever the member is.
inline double value_of(const SamplingNumber& number, const SamplingParams& params) {
  return std::visit([&](auto member) { return static_cast<double>(params.*member); }, number.member);
}

}  // namespace candor
