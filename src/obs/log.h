#pragma once
// Where messages for the operator go. Modules get a Log&; nobody prints. A message is one line: control characters
// that came with input are shown as \xNN, so that a request can't forge a line. Sinks may be called from any thread.
// Prompts, completions and keys are never logged.

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/error.h"

namespace candor::obs {

enum class LogLevel : uint8_t { kInfo, kWarning, kError, kOff };

std::string_view level_name(LogLevel level);
// "info", "warning", "error", "off".
Result<LogLevel> parse_log_level(std::string_view name);

class LogSink {
 public:
  virtual ~LogSink() = default;
  // line: without the final newline, printable.
  virtual void write(LogLevel level, std::string_view line) noexcept = 0;
};

// "12:34:56.789 warning  text" on standard error, one write for each line.
std::unique_ptr<LogSink> make_stderr_sink();

class Log {
 public:
  // The sink is borrowed.
  Log(LogSink& sink, LogLevel least) : sink_(sink), least_(least) {}

  bool is_on(LogLevel level) const noexcept { return level >= least_ && level != LogLevel::kOff; }
  void write(LogLevel level, std::string_view message) const noexcept;
  void info(std::string_view message) const noexcept { write(LogLevel::kInfo, message); }
  void warning(std::string_view message) const noexcept { write(LogLevel::kWarning, message); }
  void error(std::string_view message) const noexcept { write(LogLevel::kError, message); }

 private:
  LogSink& sink_;
  LogLevel least_;
};

}  // namespace candor::obs
