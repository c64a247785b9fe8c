#pragma once
// Where a command's text comes from: an option, a positional argument, a file, or standard input; and the model named
// beside it.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace candor::apps {

inline constexpr size_t kMaxPromptBytes = size_t{64} << 20;

struct PromptSource {
  std::optional<std::string> option;     // -p
  std::optional<std::string> file;       // -f; "-" is standard input
  std::vector<std::string> positionals;  // what is left after the model
};

// Exactly one source may give text; standard input serves when none does and it is no terminal.
// Refused: several sources, no text, a missing or unreadable or binary or too long file, invalid UTF-8 (with its
// place).
Result<std::string> read_prompt(const PromptSource& source);

// A text file that a person named; `name` stands in messages ("the prompt file a.txt"). Refused as above.
Result<std::string> read_text_file(const std::string& path, const std::string& name);

// [MODEL] PROMPT, -p and -f; `help` describes -p.
void add_prompt_options(CLI::App& command, PromptSource& source, const std::string& help);

struct ModelAndPrompt {
  std::filesystem::path model;
  std::string text;
};

// Tells the model (choose_model; `option` is the value of -m) from the text among the positional arguments.
Result<ModelAndPrompt> read_model_and_prompt(const std::optional<std::string>& option, PromptSource source);

// All of standard input. allow_any_bytes: else invalid UTF-8 is refused.
Result<std::string> read_stdin(bool allow_any_bytes);

}  // namespace candor::apps
