#include "apps/commands/reading_texts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/commands/serve_options.h"
#include "apps/options/arguments.h"
#include "apps/options/model_choice.h"
#include "apps/options/prompt_source.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/terminal.h"

namespace candor::apps {
namespace {

using Clock = std::chrono::steady_clock;

Result<std::string> whole_file(const std::string& path) {
  return path == "-" ? read_stdin(false) : read_text_file(path, "the file " + path);
}

// Without empty ones at the end.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

Result<std::vector<std::string>> texts_of_objects(const std::string& text, const std::string& field) {
  std::vector<std::string> texts;
  for (const std::string& line : lines_of(text)) {
    if (line.empty()) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const bool has_text = json.is_object() && json.contains(field) && json[field].is_string();
    if (!has_text) {
      return fail(ErrorKind::kInvalidInput, fmt::format("line {} of the file is no JSON object with a text \"{}\" "
                                                        "(--field names another)",
                                                        texts.size() + 1, field));
    }
    texts.push_back(json[field].get<std::string>());
  }
  return texts;
}

// On a terminal whose output goes elsewhere: how many, how fast, how long yet.
class Progress {
 public:
  explicit Progress(size_t n_texts) : n_texts_(n_texts) {}
  ~Progress() {
    if (is_shown_) write_err("\r\x1b[K");
  }
  void add(int64_t n_tokens) {
    ++n_done_;
    n_tokens_ += n_tokens;
  }
  void show() {
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    const bool is_seen = is_terminal(STDERR_FILENO) && !is_terminal(STDOUT_FILENO);
    if (!is_seen || seconds < 1.0 || seconds < last_shown_ + 0.2) return;
    last_shown_ = seconds;
    const double left =
        seconds / static_cast<double>(std::max<size_t>(1, n_done_)) * static_cast<double>(n_texts_ - n_done_);
    write_err("\r\x1b[K" + fmt::format("{} of {} texts, {:.0f} tok/s, {} left", n_done_, n_texts_,
                                       static_cast<double>(n_tokens_) / seconds, time_left(left)));
    is_shown_ = true;
  }

 private:
  const size_t n_texts_;
  const Clock::time_point began_ = Clock::now();
  size_t n_done_ = 0;
  int64_t n_tokens_ = 0;
  double last_shown_ = 0;
  bool is_shown_ = false;
};

}  // namespace

void add_reading_options(CLI::App& command, ReadingOptions& options, const std::string& texts) {
  command.add_option("texts", options.positionals, texts);
  command.add_option("-m,--model", options.generation.model, "GGUF file or folder; left out: the shipped model")
      ->type_name("MODEL");
  command.add_option("-f,--file", options.file, "read the texts from a file, one a line (- for standard input)")
      ->type_name("FILE");
  command.add_option("--jsonl", options.jsonl, "read the texts from a file of JSON objects, one a line")
      ->type_name("FILE");
  command.add_option("--field", options.field, "which member of the objects is the text (text)")->type_name("NAME");
  command.add_flag("--truncate", options.cuts, "cut texts that are longer than the model reads, instead of an error");
  command.add_flag("--json", options.json, "one JSON object a text");
  add_machine_options(command, options.generation);
}

std::optional<OpenReader> open_reader(const ReadingOptions& options, int& code) {
  auto choice = choose_model(options.generation.model, options.positionals);
  if (!choice) return say_error(choice.error().message), code = kUserInput, std::nullopt;
  EngineOptions engine_options = apps::engine_options(options.generation, choice->model);
  engine_options.max_running = 64;
  engine_options.max_rows = std::max(engine_options.max_rows, 512);
  auto engine = open_engine(engine_options, code);
  if (!engine) return std::nullopt;
  return OpenReader{std::move(engine), std::move(choice->texts)};
}

Result<std::vector<std::string>> texts_of(const ReadingOptions& options, std::vector<std::string> positional) {
  const int n_sources = (positional.empty() ? 0 : 1) + (options.file ? 1 : 0) + (options.jsonl ? 1 : 0);
  if (n_sources > 1) return fail(ErrorKind::kInvalidInput, "texts given in two ways: give them once");
  if (!positional.empty()) return positional;
  if (n_sources == 0 && is_terminal(STDIN_FILENO)) {
    return fail(ErrorKind::kInvalidInput, "no texts given: as arguments, by --file, by --jsonl, or on standard input");
  }
  CANDOR_ASSIGN(const std::string text, whole_file(options.jsonl ? *options.jsonl : options.file.value_or("-")));
  std::vector<std::string> texts = lines_of(text);
  if (options.jsonl) {
    CANDOR_ASSIGN(texts, texts_of_objects(text, options.field));
  }
  if (texts.empty()) return fail(ErrorKind::kInvalidInput, "the input holds no text");
  return texts;
}

int read_all(Engine& engine, const ReadingOptions& options, std::span<const Request> requests, const OnRead& on_read) {
  std::vector<Request> cut;
  if (options.cuts) {
    cut.assign(requests.begin(), requests.end());
    for (Request& request : cut) {
      request.max_prompt_tokens = engine.info().n_ctx;
      request.prompt_cut = PromptCut::kEnd;
    }
  }
  size_t n_cut = 0;
  std::optional<Progress> progress(std::in_place, requests.size());
  const auto tell = [&](size_t index, serve::ReadText text) {
    progress->add(text.n_tokens);
    if (text.n_cut > 0) ++n_cut;
    on_read(index, std::move(text));
  };
  const auto goes_on = [&] { return progress->show(), !interrupted(); };
  const auto all = options.cuts ? std::span<const Request>(cut) : requests;
  const auto read = serve::read_many(engine, {.requests = all, .on_read = tell, .goes_on = goes_on});
  progress.reset();
  if (!read) {
    const bool is_long = read.error().kind == ErrorKind::kContextLength;
    say_error(read.error().message + (is_long ? ", or cut such texts (--truncate)" : ""));
    return exit_code(read.error());
  }
  if (n_cut > 0) {
    say_warning(fmt::format("{} of {} texts were longer than the {} tokens that the model reads, and cut", n_cut,
                            requests.size(), engine.info().n_ctx));
  }
  return *read ? kDone : kInterrupted;
}

}  // namespace candor::apps
