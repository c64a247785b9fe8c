#pragma once
// The command line as a table, for what is made of it (completion.h). Plain values.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace candor::apps {

struct OptionRow {
  std::vector<std::string> long_names;   // without "--"
  std::vector<std::string> short_names;  // without "-"
  std::string value;                     // "FILE", "N", "a|b"; "" for a flag
  std::string help;

  // Of "a|b"; empty where any value may stand.
  std::vector<std::string> choices() const;
  // Whether a file's or folder's name is expected.
  bool takes_path() const;
  std::vector<std::string> words() const;  // "--model", "-m"
};

struct CommandRow {
  std::string words;  // behind "candor": "bench serve"; "" for candor itself
  std::string help;
  std::string positionals;  // "[MODEL] TEXT"
  std::vector<std::string> commands;
  std::vector<OptionRow> options;
};

// candor itself first, then every command that people type, those of commands behind their own.
std::vector<CommandRow> command_table(const CLI::App& app);

}  // namespace candor::apps
