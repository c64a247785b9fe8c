#pragma once
// How a command that reads a whole text cuts it: windows, documents, control tokens.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"

namespace candor::apps {

inline constexpr int64_t kUsualWindow = 512;  // tokens read together, where the context has as many

struct WindowChoice {
  std::optional<int64_t> n_tokens;
  std::optional<std::string> split_at;  // stands between two documents
  bool parse_special = false;

  // Of a model with so many positions.
  int32_t tokens_of(int32_t max_positions) const;
};

// --window, --parse-special, --split-at.
void add_window_options(CLI::App& command, WindowChoice& choice);
// Refuses an empty separator.
Result<void> check(const WindowChoice& choice);

}  // namespace candor::apps
