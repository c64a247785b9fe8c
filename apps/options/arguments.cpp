#include "apps/options/arguments.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "apps/options/config_file.h"
#include "apps/terminal/terminal.h"
#include "base/utf8.h"

namespace candor::apps {
namespace {

// Levenshtein distance.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(word, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

struct Chosen {
  const CLI::App* command;
  std::string words;  // as they were typed: "candor bench serve"

  // In front of what is wrong; say_error() says "candor" itself.
  std::string prefix() const {
    const size_t at = words.find(' ');
    return at == std::string::npos ? std::string() : words.substr(at + 1) + ": ";
  }
};

Chosen chosen_command(const CLI::App& app) {
  Chosen chosen{&app, "candor"};
  for (auto parsed = app.get_subcommands(); !parsed.empty(); parsed = chosen.command->get_subcommands()) {
    chosen.command = parsed.front();
    chosen.words += " " + chosen.command->get_name();
  }
  return chosen;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string describe_extra(const CLI::App& app, const std::string& extra) {
  const Chosen chosen = chosen_command(app);
  if (extra.starts_with("-")) {
    const std::string flag = extra.substr(0, extra.find('='));
    const std::string guess = nearest_option(*chosen.command, flag);
    return fmt::format("{}unknown option {}{}; '{} --help' lists them", chosen.prefix(), flag,
                       guess.empty() ? "" : fmt::format(" (did you mean {}?)", guess), chosen.words);
  }
  std::vector<std::string> commands;
  for (const CLI::App* sub : chosen.command->get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(sub->get_name());
  if (commands.empty())
    return fmt::format("{}what is \"{}\"? '{} --help' shows what goes where", chosen.prefix(), extra, chosen.words);
  const std::string guess = nearest(extra, commands);
  return fmt::format("{}unknown command \"{}\"{}; '{} --help' lists them", chosen.prefix(), extra,
                     guess.empty() ? "" : fmt::format(" (did you mean {}?)", guess), chosen.words);
}

// What few ask for: shown by --help-all.
constexpr size_t kMostWords = 1000;
constexpr const char* kRareGroup = "More options";
constexpr const char* kRareOptions[] = {"mmproj",
                                        "ranks",
                                        "operations",
                                        "level",
                                        "receipt",
                                        "receipt-key",
                                        "restart",
                                        "batch-dir",
                                        "rerank-by-similarity",
                                        "max-connections",
                                        "max-per-key",
                                        "max-inflight-mb",
                                        "max-body-mb",
                                        "max-n",
                                        "workers",
                                        "max-loaded",
                                        "models-memory-mb",
                                        "dynatemp-range",
                                        "dynatemp-exponent",
                                        "typical-p",
                                        "xtc-probability",
                                        "xtc-threshold",
                                        "frequency-penalty",
                                        "presence-penalty",
                                        "dry-multiplier",
                                        "dry-base",
                                        "dry-allowed-length",
                                        "dry-penalty-last-n",
                                        "dry-sequence-breaker",
                                        "repeat-last-n",
                                        "min-tokens",
                                        "no-repeat-ngram-size",
                                        "logit-bias",
                                        "bad-word",
                                        "allowed-token-id",
                                        "samplers",
                                        "stop-token",
                                        "stop-scope",
                                        "ignore-eos",
                                        "on-context-full",
                                        "device",
                                        "on-device-lost",
                                        "gpu-layers",
                                        "cpu-experts",
                                        "kv-type",
                                        "kept-states",
                                        "cache-dir",
                                        "cache-size",
                                        "no-disk-cache",
                                        "no-kv-cache",
                                        "grammar-syntax",
                                        "json-object",
                                        "choice",
                                        "n-best",
                                        "length-penalty",
                                        "search-to-the-end",
                                        "fast-weights",
                                        "adapter-dir"};

class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(bool shows_all) : shows_all_(shows_all) { column_width(34); }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kRareGroup && !shows_all_) return fmt::format("  --help-all lists {} more options\n", options.size());
    return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string value = option->get_default_str(), &words = option->get_description();
    const bool is_mentioned = value.empty() || words.find(fmt::format("({})", value)) != std::string::npos;
    const std::string text = is_mentioned ? words : fmt::format("{} [{}]", words, value);
    return beside(get_column_width(), text);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    constexpr size_t kNameWidth = 16;
    std::stringstream line;
    const std::string words = command->get_description();  // behind a semicolon: for its own help alone
    CLI::detail::format_help(line, command->get_name(), beside(kNameWidth, words.substr(0, words.find(';'))),
                             kNameWidth);
    return line.str();
  }
  std::string make_positionals(const CLI::App*) const override { return ""; }
  std::string make_usage(const CLI::App* app, std::string) const override {
    if (app->get_parent() == nullptr) return "Usage: candor COMMAND ... (candor COMMAND --help shows its options)\n";
    std::string path = app->get_name(),
                rest = app->get_subcommands([](const CLI::App*) { return true; }).empty() ? "" : " WHAT";
    for (const CLI::App* up = app->get_parent(); up != nullptr; up = up->get_parent())
      path.insert(0, up->get_name() + " ");
    for (const CLI::Option* option : app->get_options())
      if (option->get_positional()) rest += " " + option->get_description();
    return fmt::format("Usage: {}{} [options]\n", path, rest);
  }

 private:
  // What stands in the right column, in lines that end with the terminal.
  static std::string beside(size_t left_width, const std::string& text) {
    const size_t n_columns = std::max(terminal_columns(STDOUT_FILENO), left_width + 20) - left_width;
    return fmt::format("{}", fmt::join(wrapped(text, n_columns), "\n"));
  }

  bool shows_all_;
};

[[noreturn]] void refuse(const std::string& names, const std::string& value, const std::string& expected) {
  throw CLI::ValidationError(fmt::format("{}: \"{}\" is not {}", names, value, expected));
}

}  // namespace

CLI::Option* add_int(CLI::App& app, const std::string& names, std::optional<int64_t>& target, int64_t min, int64_t max,
                     const std::string& help) {
  const auto parse = [names, min, max, &target](const std::string& text) {
    int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size() || value < min || value > max)
      refuse(names, text, fmt::format("a whole number from {} to {}", min, max));
    target = value;
  };
  return app.add_option_function<std::string>(names, parse, help)->type_name("N");
}

CLI::Option* add_number(CLI::App& app, const std::string& names, std::optional<double>& target, double min, double max,
                        const std::string& help) {
  const auto parse = [names, min, max, &target](const std::string& text) {
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < min ||
        value > max)
      refuse(names, text, fmt::format("a number from {} to {}", min, max));
    target = value;
  };
  return app.add_option_function<std::string>(names, parse, help)->type_name("X");
}

CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& target,
                        const std::vector<std::string>& choices, const std::string& help) {
  const auto parse = [names, choices, &target](const std::string& text) {
    if (std::ranges::find(choices, text) == choices.end())
      refuse(names.substr(0, names.find(',')), text, fmt::format("one of {}", fmt::join(choices, ", ")));
    target = text;
  };
  return app.add_option_function<std::string>(names, parse, help)
      ->type_name(fmt::format("{}", fmt::join(choices, "|")))
      ->default_str(target);
}

void group_rare_options(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (const char* name : kRareOptions) {
      CLI::Option* option = command->get_option_no_throw(std::string("--") + name);
      if (option != nullptr) option->group(kRareGroup);
    }
  }
}

std::string help_of(CLI::App& command, bool shows_all) {
  const auto formatter = std::make_shared<HelpFormatter>(shows_all);
  for (CLI::App* at = &command; at != nullptr;) {
    at->formatter(formatter);
    const auto chosen = at->get_subcommands();
    at = chosen.empty() ? nullptr : chosen.front();
  }
  return command.help();
}

void bind_environment(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
      std::string name = "CANDOR_" + option->get_lnames().front();
      std::ranges::transform(name, name.begin(),
                             [](char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
      option->envname(name);
    }
    bind_environment(*command);
  }
}

std::string nearest_option(const CLI::App& command, const std::string& name) {
  return nearest(name, option_names(command));
}

std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (is_missing || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extras = app.remaining(true);  // a word written wrongly is what is missing, too
    if (!extras.empty()) return describe_extra(app, extras.front());
  }
  std::string text = clipped(error.what(), kMostWords);
  std::ranges::replace_if(
      text, [](char c) { return c >= 0 && c < ' '; }, ' ');  // what was typed may hold lines
  const Chosen chosen = chosen_command(app);
  if (is_missing) text += fmt::format("; '{} --help' shows what goes where", chosen.words);
  const auto config = std::dynamic_pointer_cast<ConfigFile>(chosen.command->get_config_formatter());
  return chosen.prefix() + text + (config ? config->place_of(text) : std::string());
}

}  // namespace candor::apps
