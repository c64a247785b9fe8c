#include "apps/commands/reading_texts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
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

constexpr size_t kAtOnce = 256;

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

// Requests in work, and what they gave until those before it have come.
class Reading {
 public:
  Reading(Engine& engine, std::span<const Request> requests, const OnRead& on_read)
      : engine_(engine), requests_(requests), on_read_(on_read) {}

  // False where one failed: error() says why.
  bool run() {
    while (n_told_ < requests_.size() && !error_ && !interrupted()) {
      send();
      std::map<size_t, ReadText> come;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return !done_.empty() || failed_; });
        come.swap(done_);
        if (failed_ && !error_) error_ = failed_;
      }
      for (auto& [index, text] : come) waiting_.emplace(index, std::move(text));
      n_in_work_ -= come.size();
      tell();
      show_progress();
    }
    settle();
    if (is_shown_) write_err("\r\x1b[K");
    return !error_;
  }
  const std::optional<Error>& error() const { return error_; }
  size_t n_cut() const { return n_cut_; }

 private:
  void send() {
    while (n_sent_ < requests_.size() && n_in_work_ < kAtOnce && !error_) {
      const size_t index = n_sent_;
      const auto id = engine_.submit(requests_[index], [this, index](const TokenEvent& event) { on_event(index, event); });
      if (!id && id.error().kind == ErrorKind::kOverloaded) return;
      if (!id) {
        error_ = id.error();
        error_->message = fmt::format("text {}: {}", index + 1, error_->message);
        return;
      }
      ids_.push_back(*id);
      ++n_sent_;
      ++n_in_work_;
    }
  }

  void on_event(size_t index, const TokenEvent& event) {
    if (!event.summary) return;
    const std::lock_guard lock(mutex_);
    if (event.error) failed_ = event.error;
    ReadText& text = done_[index];
    text.numbers = event.embedding.empty() ? event.prompt_rows : event.embedding;
    text.n_tokens = event.summary->usage.prompt_tokens;
    text.n_cut = event.summary->usage.truncated_tokens;
    changed_.notify_one();
  }

  void tell() {
    while (!error_ && waiting_.contains(n_told_)) {
      auto text = waiting_.extract(n_told_);
      n_tokens_ += text.mapped().n_tokens;
      if (text.mapped().n_cut > 0) ++n_cut_;
      on_read_(n_told_++, std::move(text.mapped()));
    }
  }

  // Nothing is in work any more when it returns.
  void settle() {
    for (const RequestId id : ids_) {
      if (const auto cancelled = engine_.cancel(id); !cancelled) continue;  // it has ended
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_.size() >= n_in_work_; });
  }

  void show_progress() {
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    if (!is_terminal(STDERR_FILENO) || is_terminal(STDOUT_FILENO) || seconds < last_shown_ + 0.2 || seconds < 1.0) return;
    last_shown_ = seconds;
    const double left = seconds / static_cast<double>(std::max<size_t>(1, n_told_)) *
                        static_cast<double>(requests_.size() - n_told_);
    write_err("\r\x1b[K" + fmt::format("{} of {} texts, {:.0f} tok/s, {} left", n_told_, requests_.size(),
                                       static_cast<double>(n_tokens_) / seconds, time_left(left)));
    is_shown_ = true;
  }

  Engine& engine_;
  const std::span<const Request> requests_;
  const OnRead& on_read_;
  const Clock::time_point began_ = Clock::now();
  std::vector<RequestId> ids_;
  std::map<size_t, ReadText> waiting_;
  std::optional<Error> error_;
  size_t n_sent_ = 0, n_told_ = 0, n_in_work_ = 0, n_cut_ = 0;
  int64_t n_tokens_ = 0;
  double last_shown_ = 0;
  bool is_shown_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, ReadText> done_;  // guarded by mutex_
  std::optional<Error> failed_;      // guarded by mutex_
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
  Reading reading(engine, options.cuts ? std::span<const Request>(cut) : requests, on_read);
  if (!reading.run()) {
    const bool is_long = reading.error()->kind == ErrorKind::kContextLength;
    say_error(reading.error()->message + (is_long ? ", or cut such texts (--truncate)" : ""));
    return exit_code(*reading.error());
  }
  if (reading.n_cut() > 0) {
    say_warning(fmt::format("{} of {} texts were longer than the {} tokens that the model reads, and cut",
                            reading.n_cut(), requests.size(), engine.info().n_ctx));
  }
  return interrupted() ? kInterrupted : kDone;
}

}  // namespace candor::apps
