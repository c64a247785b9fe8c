#pragma once
// What the output must obey, from the command line. A schema or grammar is given as text, or as @FILE.

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "candor/request.h"

namespace CLI {
class App;
}

namespace candor::apps {

struct ConstraintOptions {
  std::optional<std::string> json_schema, regex, grammar;
  std::string grammar_syntax = "auto";
  std::vector<std::string> choices;
  bool json_object = false;
};

void add_constraint_options(CLI::App& command, ConstraintOptions& options);
// Absent where none was given; two at once are refused.
Result<std::optional<ConstraintSpec>> read_constraint(const ConstraintOptions& options);

}  // namespace candor::apps
