// candor compare: one prompt under several settings, side by side, with one seed.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/stream.h"
#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/idle_options.h"
#include "apps/options/prompt_source.h"
#include "apps/options/sampling_options.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/error.h"
#include "candor/engine.h"
#include "candor/presets.h"

namespace candor::apps {
namespace {

constexpr size_t kMostVariants = 4;
constexpr int64_t kTokensCompared = 100;

struct CompareOptions {
  GenerationOptions generation;
  PromptSource source;
  std::vector<std::string> variants;
  bool json = false;
};

struct Variant {
  std::string name{};
  SamplingParams sampling{};
};

struct Answered {
  std::string name{};
  StreamOutcome outcome{};
};

std::string what_is_wrong(const CLI::App& line, const CLI::ParseError& error) {
  const auto extras = line.remaining();
  if (extras.empty()) return error.what();
  const std::string nearest = nearest_option(line, extras.front());
  return extras.front() + " is no option" + (nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
}

// "greedy", the name of a preset, or options of sampling as they stand on a command line.
Result<Variant> read_variant(const std::string& text, const SamplingParams& base) {
  Variant variant{text, base};
  if (text == "greedy") return variant.sampling.temperature = 0, variant;
  if (apply_preset(text, variant.sampling)) return variant;
  CLI::App line("", "--with");
  GenerationOptions o;
  o.preset.clear();
  add_choice_options(line, o);
  try {
    line.parse(text, false);
  } catch (const CLI::ParseError& error) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--with \"{}\": {}; expected greedy, a preset's name, or options like \"--temperature 2\"",
                            text, what_is_wrong(line, error)));
  }
  if (text.find_first_not_of(' ') == std::string::npos) variant.name = "as given";
  if (!o.preset.empty()) CANDOR_TRY(apply_preset(o.preset, variant.sampling));
  apply_sampling_options(o.sampling, variant.sampling);
  note_idle_sampling(line, variant.sampling);
  return variant;
}

Result<std::vector<Variant>> read_variants(const CompareOptions& options) {
  const SamplingParams base = sampling_params(options.generation);
  std::vector<Variant> variants;
  if (options.variants.size() == 1) variants.push_back({"as given", base});
  for (const std::string& text : options.variants) {
    CANDOR_ASSIGN(Variant variant, read_variant(text, base));
    variants.push_back(std::move(variant));
  }
  if (variants.empty() || variants.size() > kMostVariants)
    return fail(ErrorKind::kInvalidInput,
                fmt::format("compare takes one to {} --with, and {} were given: --with greedy --with creative --with "
                            "\"--temperature 2\"",
                            kMostVariants, variants.size()));
  for (Variant& variant : variants) {
    variant.sampling.logprobs = std::max(0, variant.sampling.logprobs);
    if (!variant.sampling.max_tokens) variant.sampling.max_tokens = kTokensCompared;
  }
  return variants;
}

// All with the seed of the first. Fewer where somebody interrupts.
Result<std::vector<Answered>> answer_all(Engine& engine, Request request, const std::vector<Variant>& variants) {
  std::vector<Answered> answers;
  for (const Variant& variant : variants) {
    const auto seed = request.sampling.seed;
    request.sampling = variant.sampling;
    if (seed) request.sampling.seed = seed;
    Answered& answer = answers.emplace_back(Answered{.name = variant.name});
    auto outcome = stream_request(engine, request, [](std::string_view) { return true; });
    if (!outcome) return outcome.error();
    answer.outcome = std::move(*outcome);
    request.sampling.seed = answer.outcome.summary.usage.seed;
    if (interrupted()) break;
  }
  return answers;
}

size_t n_common_tokens(const std::vector<Answered>& answers) {
  size_t n = answers.front().outcome.tokens.size();
  for (const Answered& answer : answers) {
    const auto& a = answers.front().outcome.tokens;
    const auto& b = answer.outcome.tokens;
    const auto parted = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    n = std::min(n, static_cast<size_t>(parted - a.begin()));
  }
  return n;
}

double mean_probability(const CompletedChoice& answer) {
  double sum = 0;
  for (const TokenLogprob& one : answer.logprobs) sum += static_cast<double>(one.logprob);
  return answer.logprobs.empty() ? 0.0 : std::exp(sum / static_cast<double>(answer.logprobs.size()));
}

class SideBySide {
 public:
  SideBySide(const Engine& engine, const std::vector<Answered>& answers) : engine_(engine), answers_(answers) {
    const size_t n = answers.size();
    width_ = (terminal_columns(STDOUT_FILENO) - 3 * (n - 1)) / n;
  }

  std::string text() {
    const size_t n = n_common_tokens(answers_);
    if (n > 0) {
      out_ += style_.dim(fmt::format("all alike for {} {}:", n, n == 1 ? "token" : "tokens")) + "\n";
      for (const std::string& line : wrapped(text_of(0, 0, n), terminal_columns(STDOUT_FILENO))) out_ += line + "\n";
      out_ += "\n";
    }
    std::vector<std::vector<std::string>> columns;
    for (size_t i = 0; i < answers_.size(); ++i) {
      const std::string rest = text_of(i, n, answers_[i].outcome.tokens.size());
      columns.push_back(wrapped(std::string_view(rest).substr(rest.starts_with(' ') ? 1 : 0), width_));
    }
    add_row([&](size_t i) { return answers_[i].name; }, true);
    add_rule();
    const size_t n_lines = std::ranges::max(columns, {}, &std::vector<std::string>::size).size();
    for (size_t line = 0; line < n_lines; ++line)
      add_row([&](size_t i) { return line < columns[i].size() ? columns[i][line] : std::string(); }, false);
    add_rule();
    add_row([&](size_t i) { return fmt::format("{} tokens", answers_[i].outcome.tokens.size()); }, false);
    add_row([&](size_t i) { return fmt::format("mean p {:.3f}", mean_probability(answers_[i].outcome)); }, false);
    add_row([&](size_t i) { return std::string(to_string(answers_[i].outcome.finish)); }, false);
    return std::move(out_);
  }

 private:
  // Of some of its tokens; an end token says nothing.
  std::string text_of(size_t i, size_t begin, size_t end) const {
    const std::vector<TokenId>& tokens = answers_[i].outcome.tokens;
    const auto text = engine_.detokenize(std::span(tokens).subspan(begin, end - begin));
    return text ? *text : "";
  }

  template <class Cell>
  void add_row(const Cell& cell, bool is_head) {
    std::string line;
    for (size_t i = 0; i < answers_.size(); ++i) {
      const std::string shown = fitted(cell(i), width_);
      line += (i == 0 ? "" : style_.dim(" | ")) + padded(is_head ? style_.bold(shown) : shown, width_, shown);
    }
    while (line.ends_with(' ')) line.pop_back();
    out_ += line + "\n";
  }

  void add_rule() {
    std::string line;
    for (size_t i = 0; i < answers_.size(); ++i) line += (i == 0 ? "" : "-+-") + std::string(width_, '-');
    out_ += style_.dim(line) + "\n";
  }

  const Engine& engine_;
  const std::vector<Answered>& answers_;
  size_t width_;
  Style style_{STDOUT_FILENO};
  std::string out_;
};

std::string compare_json(const std::vector<Answered>& answers) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Answered& answer : answers) {
    list.push_back({{"name", answer.name},
                    {"text", answer.outcome.text},
                    {"tokens", answer.outcome.tokens},
                    {"finish_reason", to_string(answer.outcome.finish)},
                    {"was_drawn", answer.outcome.was_drawn},
                    {"mean_probability", mean_probability(answer.outcome)},
                    {"decode_tokens_per_second", answer.outcome.summary.timings.decode_tokens_per_s}});
  }
  const nlohmann::ordered_json json = {{"seed", answers.front().outcome.summary.usage.seed},
                                       {"prompt_tokens", answers.front().outcome.summary.usage.prompt_tokens},
                                       {"common_tokens", n_common_tokens(answers)},
                                       {"answers", std::move(list)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run(const CompareOptions& options) {
  const auto variants = read_variants(options);
  if (!variants) return say_error(variants.error().message), kUserInput;
  auto asked = read_model_and_prompt(options.generation.model, options.source);
  if (!asked) return say_error(asked.error().message), kUserInput;
  int code = kDone;
  const auto engine = open_engine(engine_options(options.generation, asked->model), code);
  if (!engine) return code;
  Request request;
  request.prompt = make_prompt(options.generation, engine->info(), std::move(asked->text));
  request.sampling.seed = variants->front().sampling.seed;
  request.on_context_full = context_full_action(options.generation);
  request.adapters = all_adapters(options.generation.adapters);
  const auto answers = answer_all(*engine, request, *variants);
  if (!answers) return say_error(answers.error().message), exit_code(answers.error());
  write_out(options.json ? compare_json(*answers) : SideBySide(*engine, *answers).text());
  const bool was_drawn =
      std::ranges::any_of(*answers, [](const Answered& answer) { return answer.outcome.was_drawn; });
  if (!options.json && was_drawn)
    write_err(Style(STDERR_FILENO).dim(fmt::format("seed {}", answers->front().outcome.summary.usage.seed)) + "\n");
  return interrupted() ? kInterrupted : kDone;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("compare", "one prompt under several settings, side by side");
  const auto options = std::make_shared<CompareOptions>();
  add_prompt_options(*command, options->source, "the prompt");
  command
      ->add_option("--with", options->variants, "greedy, a preset, or \"--temperature 2 --top-k 5\"; repeat, at most 4")
      ->type_name("OPTIONS")
      ->expected(1)
      ->take_all();
  add_raw(*command, options->generation);
  command->add_flag("--json", options->json, "as JSON");
  add_generation_options(*command, options->generation);
  add_ranks(*command, options->generation.n_ranks);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
