#pragma once
// The options that say how each token is chosen, named as the API names them: numbers with the ranges of the sampler,
// and lists of tokens and texts.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "candor/request.h"

namespace CLI {
class App;
}

namespace candor::apps {

struct SamplingOptions {
  // Given values by field; CLI11 writes into the slots, which therefore keep their places.
  std::deque<std::pair<double SamplingParams::*, std::optional<double>>> reals{};
  std::deque<std::pair<std::int64_t SamplingParams::*, std::optional<std::int64_t>>> counts{};
  std::vector<std::string> logit_bias{};  // "ID=VALUE", "TEXT=VALUE", "ID=ban"
  std::vector<std::string> bad_words{};
  std::vector<std::string> dry_breakers{};
  std::vector<std::int64_t> allowed_ids{};
  std::string samplers{};  // names with commas
};

// defaults: what holds where an option is not given, for the help.
void add_sampling_options(CLI::App& command, SamplingOptions& options, const SamplingParams& defaults);
// Of these: the numbers, the order of the stages, and the biases.
void add_sampling_numbers(CLI::App& command, SamplingOptions& options, const SamplingParams& defaults);
// "ID=VALUE", "TEXT=VALUE", "ID=ban". What cannot be a bias becomes one that the engine refuses by name.
LogitBias parse_bias(const std::string& text);
// Ranges, and the order of the stages.
Result<void> check_sampling(const SamplingParams& params);
// Overwrites what was given on the command line.
void apply_sampling_options(const SamplingOptions& options, SamplingParams& params);

}  // namespace candor::apps
