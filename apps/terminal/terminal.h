#pragma once
// The person's side of a terminal: colours and cursor codes only where there is one, text out that survives a closed
// pipe, a progress bar for what takes more than a second, and Ctrl-C as a flag. Main thread only, but for
// interrupted().

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/terminal/progress_line.h"

namespace candor::apps {

bool is_terminal(int fd);

// Styled text for stderr or stdout; unstyled where that is no terminal, or NO_COLOR is set.
class Style {
 public:
  explicit Style(int fd);
  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string dim(std::string_view text) const { return wrap("2", text); }
  std::string green(std::string_view text) const { return wrap("32", text); }
  std::string yellow(std::string_view text) const { return wrap("33", text); }
  std::string cyan(std::string_view text) const { return wrap("36", text); }
  std::string struck(std::string_view text) const { return wrap("2;9", text); }

 private:
  std::string wrap(const char* code, std::string_view text) const;
  bool on_;
};

// Writes all of it and flushes. False once the reader is gone (EPIPE) or the disk is full: the caller should stop
// quietly.
bool write_out(std::string_view text);
// Why some of it was not written, unless the reader went away.
std::optional<std::string> lost_output();
void write_err(std::string_view text);
// "candor: MESSAGE" on stderr.
void say_error(std::string_view message);
void say_warning(std::string_view message);

// Installs the handlers: SIGPIPE and SIGXFSZ are ignored (they are errors of the write); the first Ctrl-C, SIGTERM or
// SIGHUP (where it is not ignored, as under nohup) sets the flag, the second ends the process with 130.
void install_signal_handlers();
bool interrupted();
void clear_interrupt();
// From now on SIGHUP does not end the process: take_hang_up() tells of it, once.
void catch_hang_ups();
bool take_hang_up();

// While one lives, Ctrl-C and SIGTERM end the process with 130 at once: there is nothing to lose (a prompt waits for
// input, a model is loaded).
class EndsOnInterrupt {
 public:
  EndsOnInterrupt();
  ~EndsOnInterrupt();
  EndsOnInterrupt(const EndsOnInterrupt&) = delete;
  EndsOnInterrupt& operator=(const EndsOnInterrupt&) = delete;

 private:
  bool before_;
};

// One line on stderr, rewritten in place; shows itself after a second, and only on a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label, ProgressUnit unit = ProgressUnit::kBytes);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(uint64_t done, uint64_t total);
  void finish();

 private:
  std::string label_;
  ProgressUnit unit_;
  bool on_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point last_;
};

// "1.2 MB", "3.4 GB"
std::string format_bytes(uint64_t n_bytes);
// "0.8 ms", "12 ms", "1.34 s"
std::string format_ms(double ms);
// "292 800", thin enough to read
std::string format_count(int64_t n);
// Columns that a terminal shows; every code point is taken for one.
size_t columns_of(std::string_view text);
// Spaces behind it up to so many columns; `shown` is the text without its colours.
std::string padded(std::string text, size_t n_columns, std::string_view shown);
// At most so many columns; "..." at the end of what is longer.
std::string fitted(std::string_view text, size_t n_columns);
// Lines of at most so many columns, broken between words where there are any; control characters made visible.
std::vector<std::string> wrapped(std::string_view text, size_t n_columns);
// Columns of the terminal behind fd, or COLUMNS, or 100.
size_t terminal_columns(int fd);
// Control characters made visible, for names and pieces of a file shown to a person.
std::string printable(std::string_view text);

}  // namespace candor::apps
