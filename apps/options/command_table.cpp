#include "apps/options/command_table.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace candor::apps {
namespace {

void add_rows(const CLI::App& command, const std::string& words, std::vector<CommandRow>& rows) {
  CommandRow row{words, command.get_description(), {}, {}, {}};
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      row.positionals += (row.positionals.empty() ? "" : " ") + option->get_description();
    } else if (!option->get_group().empty()) {
      row.options.push_back({option->get_lnames(), option->get_snames(),
                             option->get_type_size() == 0 ? "" : option->get_type_name(), option->get_description()});
    }
  }
  const auto subs = command.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
  for (const CLI::App* sub : subs) row.commands.push_back(sub->get_name());
  rows.push_back(std::move(row));
  for (const CLI::App* sub : subs)
    add_rows(*sub, words.empty() ? sub->get_name() : words + " " + sub->get_name(), rows);
}

}  // namespace

std::vector<std::string> OptionRow::choices() const {
  std::vector<std::string> all;
  if (value.find('|') == std::string::npos) return all;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find('|', begin), value.size());
    all.push_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

bool OptionRow::takes_path() const {
  constexpr const char* kParts[] = {"FILE", "MODEL", "FOLDER", "PATH", "DIR", "OUT"};
  return std::ranges::any_of(kParts, [this](const char* part) { return value.find(part) != std::string::npos; });
}

std::vector<std::string> OptionRow::words() const {
  std::vector<std::string> all;
  for (const std::string& name : long_names) all.push_back("--" + name);
  for (const std::string& name : short_names) all.push_back("-" + name);
  return all;
}

std::vector<CommandRow> command_table(const CLI::App& app) {
  std::vector<CommandRow> rows;
  add_rows(app, "", rows);
  return rows;
}

}  // namespace candor::apps
