// The command line for people to read: candor(1), and docs/options.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "apps/options/command_table.h"
#include "apps/options/completion.h"
#include "apps/options/replaced.h"
#include "apps/terminal/exit_codes.h"
#include "candor/version.h"

namespace candor::apps {
namespace {

std::string roff(std::string_view text) {
  std::string out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  out = replaced(out, "\n.", "\n\\&.");
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string roff_option(const OptionRow& option) {
  std::string names;
  for (const std::string& word : option.words())
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(word));
  if (!option.value.empty()) names += fmt::format(" \\fI{}\\fR", roff(option.value));
  return fmt::format(".TP\n{}\n{}\n", names, roff(option.help));
}

std::string markdown(std::string_view text) {
  return replaced(replaced(replaced(text, "|", "\\|"), "<", "&lt;"), "\n", " ");
}

std::string markdown_option(const OptionRow& option) {
  std::string names;
  for (const std::string& word : option.words()) names += fmt::format("{}`{}`", names.empty() ? "" : ", ", word);
  if (!option.value.empty()) names += " " + markdown(option.value);
  return fmt::format("| {} | {} |\n", names, markdown(option.help));
}

bool is_help(const OptionRow& option) {
  return !option.long_names.empty() && option.long_names[0].starts_with("help");
}

// Without those of --help.
std::vector<CommandRow> shown_commands(const CLI::App& app) {
  std::vector<CommandRow> rows = command_table(app);
  std::erase_if(rows, [](const CommandRow& row) { return row.words.empty(); });
  for (CommandRow& row : rows) std::erase_if(row.options, is_help);
  return rows;
}

std::string call_of(const CommandRow& row) {
  return "candor " + row.words + (row.positionals.empty() ? "" : " " + row.positionals);
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH CANDOR 1 \"\" \"candor {}\" \"User Commands\"\n.SH NAME\ncandor \\- {}\n.SH SYNOPSIS\n.B candor\n"
      "COMMAND [\\fIoptions\\fR]\n.SH DESCRIPTION\n{}\n",
      kVersion, "an LLM inference engine that gives one answer and hides nothing", roff(app.get_footer()));
  out = replaced(out, "\n\n  ", "\n.PP\n.nf\n  ");
  out += ".fi\n.SH COMMANDS\n";
  for (const CommandRow& row : shown_commands(app)) {
    out += fmt::format(".SS \"{} [options]\"\n{}\n", roff(call_of(row)), roff(row.help));
    for (const OptionRow& option : row.options) out += roff_option(option);
  }
  out +=
      ".SH ENVIRONMENT\nEvery long option can be set by a variable: \\-\\-top\\-k is CANDOR_TOP_K.\n"
      ".SH EXIT STATUS\n";
  for (const ExitCodeRow& row : kExitCodes) out += fmt::format(".TP\n{}\n{}\n", row.code, roff(row.meaning));
  return out;
}

std::string options_page(const CLI::App& app) {
  std::string out =
      "# Commands and options\n\nMade by `candor completion markdown` from the command line's own table; do not edit it. Every "
      "long option can\nbe set in the environment (`--top-k` is `CANDOR_TOP_K`), and those of `serve` in a file (`--config`).\n";
  for (const CommandRow& row : shown_commands(app)) {
    out += fmt::format("\n## {}\n\n`{}`: {}\n", "candor " + row.words, call_of(row), markdown(row.help));
    if (!row.options.empty()) out += "\n| option | what it does |\n|---|---|\n";
    for (const OptionRow& option : row.options) out += markdown_option(option);
  }
  out += "\n## Exit codes\n\n| exit code | meaning |\n|---|---|\n";
  for (const ExitCodeRow& row : kExitCodes) out += fmt::format("| {} | {} |\n", row.code, markdown(row.meaning));
  return out;
}

}  // namespace candor::apps
