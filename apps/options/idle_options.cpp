#include "apps/options/idle_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "apps/terminal/terminal.h"
#include "sample/chain.h"

namespace candor::apps {
namespace {

constexpr std::initializer_list<const char*> kOfDraws = {
    "--top-k",         "--top-p",        "--min-p",           "--typical-p", "--xtc-probability",
    "--xtc-threshold", "--dynatemp-range", "--dynatemp-exponent", "--seed"};

bool is_given(const CLI::App& command, const char* name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

}  // namespace

void note_idle(const CLI::App& command, std::initializer_list<const char*> names, std::string_view reason) {
  for (const char* name : names) {
    if (is_given(command, name)) say_warning(fmt::format("{} has no effect: {}", name, reason));
  }
}

bool draws(const Request& request) {
  return !request.beams && request.sampling.temperature >= sample::kGreedyBelow;
}

namespace {

void note_idle_penalties(const CLI::App& command, const SamplingParams& sampling) {
  const bool has_penalty =
      sampling.repetition_penalty != 1 || sampling.frequency_penalty != 0 || sampling.presence_penalty != 0;
  if (!has_penalty) note_idle(command, {"--repeat-last-n"}, "no penalty is given");
  if (sampling.dry_multiplier == 0) {
    note_idle(command, {"--dry-base", "--dry-allowed-length", "--dry-penalty-last-n", "--dry-sequence-breaker"},
              "--dry-multiplier is 0");
  }
}

}  // namespace

void note_idle_sampling(const CLI::App& command, const SamplingParams& sampling) {
  if (sampling.temperature < sample::kGreedyBelow) {
    note_idle(command, kOfDraws, "at temperature 0 the most likely token is taken, nothing is drawn");
  } else {
    if (sampling.dynatemp_range == 0) note_idle(command, {"--dynatemp-exponent"}, "--dynatemp-range is 0");
    if (sampling.xtc_probability == 0) note_idle(command, {"--xtc-threshold"}, "--xtc-probability is 0");
  }
  note_idle_penalties(command, sampling);
}

void note_idle_generation(const CLI::App& command, const Request& request) {
  const SamplingParams& sampling = request.sampling;
  if (request.beams) {
    constexpr std::string_view kReason = "--beams searches for the likeliest text, nothing is drawn";
    note_idle(command, kOfDraws, kReason);
    note_idle(command, {"--temperature", "--preset"}, kReason);
    note_idle(command, {"--speculate", "--draft"}, "with --beams nothing is drafted");
    note_idle_penalties(command, sampling);
  } else {
    note_idle_sampling(command, sampling);
  }
  if (sampling.stop.empty() && sampling.stop_ids.empty()) {
    note_idle(command, {"--stop-scope"}, "neither --stop nor --stop-token is given");
  }
  if (!is_given(command, "--grammar")) note_idle(command, {"--grammar-syntax"}, "no --grammar is given");
}

}  // namespace candor::apps
