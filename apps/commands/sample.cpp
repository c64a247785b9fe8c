// candor sample: the sampler alone, on logits or probabilities that somebody types.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/explain/bare_sampler.h"
#include "apps/explain/stages.h"
#include "apps/options/arguments.h"
#include "apps/options/idle_options.h"
#include "apps/options/sampling_options.h"
#include "apps/options/typed_numbers.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/error.h"
#include "base/utf8.h"
#include "candor/event.h"
#include "candor/presets.h"
#include "candor/request.h"

namespace candor::apps {
namespace {

constexpr int64_t kMostDraws = 1'000'000;
constexpr int64_t kMostWork = 300'000'000;  // draws times numbers: some seconds
constexpr size_t kMostShown = 32;

struct SampleOptions {
  std::optional<std::string> logits, probabilities, labels, history;
  std::optional<int64_t> n_draws, seed;
  SamplingOptions sampling;
  std::string preset;
  bool json = false;
};

struct Asked {
  BareChoice choice{};
  std::vector<std::string> labels{};  // one for each number
  double sum = 1.0;                   // of the probabilities as they were typed
};

Error wrong(std::string message) {
  return fail(ErrorKind::kInvalidInput, std::move(message));
}

Result<void> take_probabilities(const std::vector<double>& numbers, Asked& asked) {
  asked.sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!(numbers[i] >= 0.0) || numbers[i] > 1.0)
      return wrong(fmt::format("--probabilities: number {} is {:g}, expected 0 to 1", i + 1, numbers[i]));
    asked.choice.logits.push_back(numbers[i] > 0.0 ? static_cast<float>(std::log(numbers[i]))
                                                   : -std::numeric_limits<float>::infinity());
  }
  return {};
}

Result<void> take_numbers(const SampleOptions& o, Asked& asked) {
  if (o.logits.has_value() == o.probabilities.has_value())
    return wrong("give the numbers once: --logits 2.0,-1.5,0.3, or --probabilities 0.7,0.2,0.1 (@FILE reads a file)");
  CANDOR_ASSIGN(const std::vector<double> numbers, o.logits ? read_numbers(*o.logits, "--logits")
                                                            : read_numbers(*o.probabilities, "--probabilities"));
  if (o.probabilities) CANDOR_TRY(take_probabilities(numbers, asked));
  if (o.logits) asked.choice.logits.assign(numbers.begin(), numbers.end());
  const bool has_any = std::ranges::any_of(asked.choice.logits, [](float x) { return std::isfinite(x); });
  return has_any ? Result<void>()
                 : wrong("none of the numbers leaves anything to choose: one must be above 0 (or -inf)");
}

Result<void> take_labels(const SampleOptions& o, Asked& asked) {
  const size_t n = asked.choice.logits.size();
  if (o.labels) {
    CANDOR_ASSIGN(asked.labels, read_labels(*o.labels, "--labels"));
    if (asked.labels.size() != n)
      return wrong(fmt::format("--labels gives {} names for {} numbers: one each", asked.labels.size(), n));
    return {};
  }
  for (size_t i = 0; i < n; ++i) asked.labels.push_back(fmt::format("{}", i));
  return {};
}

// By their labels, else by their places. Borrows the labels.
class TokenFinder {
 public:
  explicit TokenFinder(const std::vector<std::string>& labels) {
    for (const std::string& label : labels) by_label_.emplace(label, static_cast<TokenId>(by_label_.size()));
  }

  Result<TokenId> find(const std::string& text, const char* option) const {
    if (const auto it = by_label_.find(text); it != by_label_.end()) return it->second;
    TokenId id = -1;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), id);
    const bool is_id = status == std::errc() && end == text.data() + text.size();
    if (is_id && id >= 0 && static_cast<size_t>(id) < by_label_.size()) return id;
    return wrong(fmt::format("{}: \"{}\" is none of the {} tokens (a label, or a place from 0 to {})", option,
                             clipped(text, 40), by_label_.size(), by_label_.size() - 1));
  }

 private:
  std::unordered_map<std::string_view, TokenId> by_label_;
};

Result<void> take_text(const SampleOptions& o, Asked& asked) {
  const TokenFinder tokens(asked.labels);
  if (o.history) {
    for (const std::string& name : split_at_commas(*o.history)) {
      CANDOR_ASSIGN(const TokenId token, tokens.find(name, "--history"));
      asked.choice.text.push_back(token);
    }
  }
  for (LogitBias& bias : asked.choice.sampling.logit_bias) {
    const std::string name = bias.text.empty() ? std::to_string(bias.token) : bias.text;
    CANDOR_ASSIGN(bias.token, tokens.find(name, "--logit-bias"));
    if (!bias.ban && !(std::abs(bias.bias) <= 100))
      return wrong(fmt::format("--logit-bias of {}: expected a number from -100 to 100, or ban", clipped(name, 40)));
  }
  return {};
}

Result<Asked> read(const SampleOptions& o) {
  Asked asked;
  CANDOR_TRY(take_numbers(o, asked));
  CANDOR_TRY(take_labels(o, asked));
  if (!o.preset.empty()) CANDOR_TRY(apply_preset(o.preset, asked.choice.sampling));
  apply_sampling_options(o.sampling, asked.choice.sampling);
  asked.choice.sampling.seed = static_cast<uint64_t>(o.seed.value_or(0));
  CANDOR_TRY(take_text(o, asked));
  asked.choice.n_draws = o.n_draws.value_or(0);
  asked.choice.n_shown = kMostShown;
  const int64_t n = static_cast<int64_t>(asked.choice.logits.size());
  if (asked.choice.n_draws > kMostWork / n)
    return wrong(fmt::format("--draws {} of {} numbers are too many: at most {} draws of so many",
                             asked.choice.n_draws, n, kMostWork / n));
  return asked;
}

void note_idle_sample(const CLI::App& command, const Asked& asked) {
  note_idle_sampling(command, asked.choice.sampling);
  note_idle(command, {"--min-tokens"}, "typed numbers have no end token");
  if (asked.choice.text.empty()) {
    const char* const reason = "--history names no tokens";
    note_idle(command,
              {"--repetition-penalty", "--frequency-penalty", "--presence-penalty", "--dry-multiplier",
               "--no-repeat-ngram-size"},
              reason);
  }
}

// Of what was drawn so often, beside what the probability says.
std::string draw_row(const Asked& asked, const BareOutcome& outcome, size_t i) {
  const double n = static_cast<double>(outcome.n_drawn), p = outcome.probabilities[i];
  const double drawn = static_cast<double>(outcome.counts[i]) / n;
  const double deviation = std::sqrt(n * p * (1 - p));
  const double off = static_cast<double>(outcome.counts[i]) - n * p;
  const std::string shown = fitted(printable(asked.labels[i]), 16);
  return fmt::format("    {:>7} {} {:>9.4f} {:>9.4f} {:>9}{}\n", i, padded(shown, 16, shown), p, drawn,
                     format_count(outcome.counts[i]),
                     deviation > 0.5 ? fmt::format(" {:+.1f} deviations", off / deviation) : "");
}

std::string draws_text(const Asked& asked, const BareOutcome& outcome, const Style& style) {
  if (outcome.counts.empty()) return "";
  std::vector<size_t> order(outcome.counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return outcome.probabilities[i]; });
  std::string out =
      style.bold(fmt::format("{} draws, seed {}{}", format_count(outcome.n_drawn), *asked.choice.sampling.seed,
                             outcome.n_drawn < asked.choice.n_draws ? ", interrupted" : "")) +
      "\n" + style.dim(fmt::format("    {:>7} {:<16} {:>9} {:>9} {:>9}\n", "", "", "stated", "drawn", "times"));
  if (outcome.n_drawn == 0) return out;
  const size_t n_rows = std::min(order.size(), kMostShown);
  for (size_t rank = 0; rank < n_rows; ++rank) out += draw_row(asked, outcome, order[rank]);
  if (order.size() > n_rows) {
    int64_t n_others = outcome.n_drawn;
    for (size_t rank = 0; rank < n_rows; ++rank) n_others -= outcome.counts[order[rank]];
    out += fmt::format("    {:>7} {} others{:>28}\n", "", format_count(static_cast<int64_t>(order.size() - n_rows)),
                       format_count(n_others));
  }
  return out;
}

std::string to_text(const Asked& asked, const BareOutcome& outcome) {
  const Style style(STDOUT_FILENO);
  const TokenName name = [&](TokenId token) { return printable(asked.labels[static_cast<size_t>(token)]); };
  std::string out =
      stages_text(outcome.explanation.stages, outcome.token, {name, asked.choice.sampling}, style);
  const std::string chosen = style.green(name(outcome.token));
  out += outcome.explanation.was_drawn
             ? fmt::format("{:.6f} was drawn with seed {}: {}\n", outcome.explanation.draw,
                           *asked.choice.sampling.seed, chosen)
             : fmt::format("the best is taken: {}\n", chosen);
  return out + draws_text(asked, outcome, style);
}

std::string to_json(const Asked& asked, const BareOutcome& outcome) {
  const TokenName label = [&](TokenId token) { return asked.labels[static_cast<size_t>(token)]; };
  nlohmann::ordered_json json = {{"numbers", asked.labels.size()},
                                 {"stages", stages_json(outcome.explanation.stages, label)},
                                 {"was_drawn", outcome.explanation.was_drawn},
                                 {"draw", outcome.explanation.was_drawn
                                              ? nlohmann::ordered_json(outcome.explanation.draw)
                                              : nlohmann::ordered_json()},
                                 {"seed", outcome.explanation.was_drawn
                                              ? nlohmann::ordered_json(*asked.choice.sampling.seed)
                                              : nlohmann::ordered_json()},
                                 {"token", outcome.token},
                                 {"label", label(outcome.token)},
                                 {"probabilities", outcome.probabilities}};
  if (!outcome.counts.empty()) json["draws"] = {{"n", outcome.n_drawn}, {"counts", outcome.counts}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run(const SampleOptions& options, const CLI::App& command) {
  const auto asked = read(options);
  if (!asked) return say_error(asked.error().message), kUserInput;
  constexpr double kOff = 1e-3;
  if (std::abs(asked->sum - 1.0) > kOff)
    say_warning(fmt::format("the probabilities sum to {:.4g}: each is divided by that", asked->sum));
  note_idle_sample(command, *asked);
  const auto outcome = sample_alone(asked->choice);
  if (!outcome) return say_error(outcome.error().message), exit_code(outcome.error());
  write_out(options.json ? to_json(*asked, *outcome) : to_text(*asked, *outcome));
  return outcome->n_drawn < asked->choice.n_draws ? kInterrupted : kDone;
}

}  // namespace

void add_sample(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("sample", "the sampler alone, on logits that you type: every stage");
  const auto options = std::make_shared<SampleOptions>();
  std::vector<std::string> presets;
  for (const SamplingPreset& preset : kSamplingPresets) presets.emplace_back(preset.name);
  command->add_option("--logits", options->logits, "numbers like 2.0,-1.5,0.3")->type_name("LIST|@FILE");
  command->add_option("--probabilities", options->probabilities, "instead: numbers like 0.7,0.2,0.1")
      ->type_name("LIST|@FILE");
  command->add_option("--labels", options->labels, "names for them; in a file one a line")->type_name("LIST|@FILE");
  command->add_option("--history", options->history, "the tokens before, for penalties and DRY")->type_name("LIST");
  add_int(*command, "--draws", options->n_draws, 1, kMostDraws, "draw N times and count");
  add_int(*command, "-s,--seed", options->seed, 0, std::numeric_limits<int64_t>::max(), "seed of the draws (0)");
  add_choice(*command, "--preset", options->preset, presets, "where temperature and top-p start (off)");
  add_sampling_numbers(*command, options->sampling, SamplingParams());
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
