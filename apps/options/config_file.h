#pragma once
// `--config FILE` of a command: lines of NAME = VALUE in TOML (strings, whole and other numbers, booleans, arrays of
// them; no tables), whose names are the command's long options. Whatever else a file holds is an error with its line.

#include <CLI/CLI.hpp>

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace candor::apps {

class ConfigFile final : public CLI::ConfigTOML {
 public:
  // Borrows the command, whose options are all added by the time a file is read.
  explicit ConfigFile(CLI::App& command) : command_(command) {}

  // Reads the file into those of the command's options that neither its line nor the environment set. Throws
  // CLI::ParseError.
  void apply(const std::string& path) const;
  // Throws CLI::ConfigError.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  // " (line 3 of the file)" where the message is about an option that came from the file, else "".
  std::string place_of(const std::string& message) const;

 private:
  CLI::App& command_;
  mutable std::map<std::string, int> lines_;  // by option
};

}  // namespace candor::apps
