#pragma once
// What `embed`, `rerank` and `classify` share: which model, where their texts come from, and reading many of them at
// once, with progress.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/options/generation_options.h"
#include "base/error.h"
#include "candor/engine.h"
#include "candor/request.h"
#include "serve/core/read_many.h"

namespace CLI {
class App;
}

namespace candor::apps {

struct ReadingOptions {
  GenerationOptions generation;
  std::vector<std::string> positionals;
  std::optional<std::string> file;   // one text a line; "-" is standard input
  std::optional<std::string> jsonl;  // one object a line
  std::string field = "text";        // of the objects
  bool cuts = false;
  bool json = false;
};

// texts: how the help names what is read.
void add_reading_options(CLI::App& command, ReadingOptions& options, const std::string& texts);

// A model that is open, and the positional arguments behind it.
struct OpenReader {
  std::unique_ptr<Engine> engine;
  std::vector<std::string> texts;
};
// Nothing where it failed: `code` is the exit code, and the reason was told.
std::optional<OpenReader> open_reader(const ReadingOptions& options, int& code);

// The positional ones, those of the file, or those of standard input; none is refused.
Result<std::vector<std::string>> texts_of(const ReadingOptions& options, std::vector<std::string> positional);

using serve::ReadText;
using OnRead = std::function<void(size_t index, ReadText text)>;

// Reads all, many at once; says what was cut. The exit code.
int read_all(Engine& engine, const ReadingOptions& options, std::span<const Request> requests, const OnRead& on_read);

}  // namespace candor::apps
