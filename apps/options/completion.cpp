#include "apps/options/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "apps/options/command_table.h"
#include "apps/options/replaced.h"

namespace candor::apps {
namespace {

// In single quotes, for every shell here.
std::string shell_quoted(std::string_view text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::vector<std::string> words_of(const CommandRow& row) {
  std::vector<std::string> words = row.commands;
  for (const OptionRow& option : row.options) {
    for (const std::string& word : option.words()) words.push_back(word);
  }
  return words;
}

std::string zsh_text(std::string_view text) {
  return replaced(replaced(replaced(text, "[", "\\["), "]", "\\]"), ":", "\\:");
}

// What _arguments takes for an option: "(--model -m)"{--model,-m}"[the model's file]:FILE:_files".
std::string zsh_option(const OptionRow& option) {
  std::string value;
  if (!option.value.empty()) {
    const auto choices = option.choices();
    const std::string action = !choices.empty()      ? fmt::format("({})", fmt::join(choices, " "))
                               : option.takes_path() ? "_files"
                                                     : " ";
    value = fmt::format(":{}:{}", choices.empty() ? zsh_text(option.value) : "value", action);
  }
  std::string lines;
  for (const std::string& word : option.words()) {
    lines += " \\\n        " + shell_quoted(fmt::format("*{}[{}]{}", word, zsh_text(option.help), value));
  }
  return lines;
}

std::string fish_option(const OptionRow& option, const std::string& condition) {
  std::string line = fmt::format("complete -c candor -n {}", shell_quoted(condition));
  for (const std::string& name : option.long_names) line += " -l " + name;
  for (const std::string& name : option.short_names) line += (name.size() == 1 ? " -s " : " -o ") + name;
  const auto choices = option.choices();
  if (!choices.empty()) line += " -x -a " + shell_quoted(fmt::format("{}", fmt::join(choices, " ")));
  if (choices.empty() && !option.value.empty()) line += option.takes_path() ? " -r -F" : " -x";
  return fmt::format("{} -d {}\n", line, shell_quoted(option.help));
}

// Whether the commands that were typed are these.
std::string fish_condition(const std::string& words) {
  return fmt::format("test (__candor_command) = {}", words.empty() ? "''" : fmt::format("'{}'", words));
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string known, values, words, parents;
  for (const CommandRow& row : command_table(app)) {
    if (!row.words.empty()) known += (known.empty() ? "" : " | ") + shell_quoted(row.words);
    if (!row.commands.empty()) parents += (parents.empty() ? "" : " | ") + shell_quoted(row.words + ":") + "*";
    for (const OptionRow& option : row.options) {
      if (option.value.empty()) continue;
      std::string places;
      for (const std::string& word : option.words())
        places += (places.empty() ? "" : " | ") + shell_quoted(row.words + ":" + word);
      const auto choices = option.choices();
      const std::string does = !choices.empty()
                                   ? fmt::format("offered={}", shell_quoted(fmt::format("{}", fmt::join(choices, " "))))
                               : option.takes_path() ? "wants=files"
                                                     : "wants=nothing";
      values += fmt::format("    {}) {} ;;\n", places, does);
    }
    words += fmt::format("    {}) offered={} ;;\n", shell_quoted(row.words),
                         shell_quoted(fmt::format("{}", fmt::join(words_of(row), " "))));
  }
  return fmt::format(
      R"(# Completion of candor for bash: source it, or put it into bash-completion's folder under the name candor.
_candor() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command="" offered="" wants="" at typed
  for ((at = 1; at < COMP_CWORD; ++at)); do
    typed="${{command:+$command }}${{COMP_WORDS[at]}}"
    case "$typed" in
      {}) command=$typed ;;
    esac
  done
  case "$command:$before" in
{}    *) wants=words ;;
  esac
  if [ "$wants" = words ]; then
    case "$command" in
{}    esac
    case "$command:$word" in
      {} | *:-*) ;;
      *) wants=both ;;
    esac
  fi
  COMPREPLY=()
  [ "$wants" = nothing ] || mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
  case "$wants" in
    files | both) mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$word") ;;
  esac
}}
complete -o filenames -F _candor candor
)",
      known, values, words, parents);
}

std::string zsh_completion(const CLI::App& app) {
  std::string cases, known;
  for (const CommandRow& row : command_table(app)) {
    if (!row.words.empty()) known += (known.empty() ? "" : "|") + shell_quoted(row.words);
    std::string lines;
    for (const OptionRow& option : row.options) lines += zsh_option(option);
    const std::string commands =
        row.commands.empty()
            ? ""
            : fmt::format(" \\\n        {}", shell_quoted(fmt::format("1:command:({})", fmt::join(row.commands, " "))));
    cases += fmt::format("    {})\n      _arguments{}{} \\\n        '*:file:_files' ;;\n", shell_quoted(row.words),
                         lines, commands);
  }
  return fmt::format(R"(#compdef candor
# Completion of candor for zsh: a file _candor in a folder of $fpath.
_candor() {{
  local command="" typed word
  for word in "${{words[@]:1:$((CURRENT - 2))}}"; do
    typed="${{command:+$command }}$word"
    case "$typed" in
      ({}) command=$typed; words=("${{(@)words[1]}}" "${{(@)words[3,-1]}}"); (( CURRENT -= 1 )) ;;
    esac
  done
  case "$command" in
{}  esac
}}
_candor "$@"
)",
                     known, cases);
}

std::string fish_completion(const CLI::App& app) {
  const std::vector<CommandRow> rows = command_table(app);
  std::string known, lines;
  for (const CommandRow& row : rows) {
    if (!row.words.empty()) known += " " + shell_quoted(row.words);
    const std::string condition = fish_condition(row.words);
    for (const std::string& command : row.commands) {
      std::string help;
      const std::string words = row.words.empty() ? command : row.words + " " + command;
      for (const CommandRow& other : rows) help += other.words == words ? other.help : "";
      lines += fmt::format("complete -c candor -f -n {} -a {} -d {}\n", shell_quoted(condition), command,
                           shell_quoted(help));
    }
    for (const OptionRow& option : row.options) lines += fish_option(option, condition);
  }
  return fmt::format(R"(# Completion of candor for fish: completions/candor.fish in its configuration's folder.
function __candor_command
  set -l command ''
  for word in (commandline -opc)[2..-1]
    set -l typed (string trim "$command $word")
    contains -- $typed{} && set command $typed
  end
  echo "$command"
end
{})",
                     known, lines);
}

}  // namespace candor::apps
