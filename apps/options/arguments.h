#pragma once
// Helpers over CLI11: numbers with a stated range, and one line for every mistake on the command line.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace candor::apps {

// Value must be a whole number in [min, max]; the error shows the range.
CLI::Option* add_int(CLI::App& app, const std::string& names, std::optional<int64_t>& target, int64_t min, int64_t max,
                     const std::string& help);
// Value must be a finite number in [min, max].
CLI::Option* add_number(CLI::App& app, const std::string& names, std::optional<double>& target, double min, double max,
                        const std::string& help);
// Value must be one of the names.
CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& target,
                        const std::vector<std::string>& choices, const std::string& help);

// The options of every command that few ask for go to a group that help_of() shows on demand. Call after all are added.
void group_rare_options(CLI::App& app);

// Help that fits a screen: one line an option, the order of what stands behind the command's name in the usage line.
std::string help_of(CLI::App& command, bool shows_all);

// Gives every long option its environment variable: --top-k is CANDOR_TOP_K.
void bind_environment(CLI::App& app);

// The option of the command whose name is most like this one ("--prot"), or "".
std::string nearest_option(const CLI::App& command, const std::string& name);

// What was wrong with the command line, in one line, with the nearest name that exists.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace candor::apps
