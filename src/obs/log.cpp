#include "obs/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

namespace candor::obs {
namespace {

struct NamedLevel {
  LogLevel level;
  std::string_view name;
};
constexpr std::array<NamedLevel, 4> kLevels{{{LogLevel::kInfo, "info"},
                                             {LogLevel::kWarning, "warning"},
                                             {LogLevel::kError, "error"},
                                             {LogLevel::kOff, "off"}}};

class StderrSink final : public LogSink {
 public:
  void write(LogLevel level, std::string_view line) noexcept override {
    try {
      const auto now = std::chrono::system_clock::now();
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
      const std::string text =
          fmt::format("{:%H:%M:%S}.{:03} {:8} {}\n", fmt::gmtime(now), ms, level_name(level), line);
      std::fwrite(text.data(), 1, text.size(), stderr);
    } catch (const std::exception&) {
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
  }
};

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

std::string printable(std::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    if (is_control(c)) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

std::string_view level_name(LogLevel level) {
  return kLevels[static_cast<size_t>(level)].name;
}

Result<LogLevel> parse_log_level(std::string_view name) {
  for (const NamedLevel& row : kLevels)
    if (row.name == name) return row.level;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("log level \"{}\" is unknown; expected info, warning, error or off", printable(name)));
}

std::unique_ptr<LogSink> make_stderr_sink() {
  return std::make_unique<StderrSink>();
}

void Log::write(LogLevel level, std::string_view message) const noexcept {
  if (!is_on(level)) return;
  try {
    sink_.write(level, printable(message));
  } catch (const std::exception&) {
    sink_.write(level, "a message was lost: out of memory");
  }
}

}  // namespace candor::obs
