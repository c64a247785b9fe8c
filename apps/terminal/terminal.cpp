#include "apps/terminal/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "apps/terminal/exit_codes.h"
#include "apps/terminal/progress_line.h"
#include "base/utf8.h"

namespace candor::apps {
namespace {

std::atomic<bool> interrupt_flag{false};
std::atomic<bool> interrupt_is_final{false};
std::atomic<bool> hang_up_flag{false};
std::atomic<int> output_error{0};

void on_interrupt(int) {
  if (interrupt_is_final.load() || interrupt_flag.exchange(true)) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, "\n", 1);
    ::_exit(kInterrupted);
  }
}

void on_hang_up(int) {
  hang_up_flag.store(true);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

Style::Style(int fd) : on_(is_terminal(fd) && std::getenv("NO_COLOR") == nullptr) {}

std::string Style::wrap(const char* code, std::string_view text) const {
  return on_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

bool write_out(std::string_view text) {
  if (write_all(STDOUT_FILENO, text)) return true;
  if (errno != EPIPE) output_error.store(errno);
  return false;
}
std::optional<std::string> lost_output() {
  const int cause = output_error.load();
  if (cause == 0) return std::nullopt;
  return fmt::format("standard output cannot be written: {}; the output is not complete",
                     std::generic_category().message(cause));
}
void write_err(std::string_view text) {
  write_all(STDERR_FILENO, text);
}
void say_error(std::string_view message) {
  write_err(fmt::format("candor: {}\n", printable(message)));
}
void say_warning(std::string_view message) {
  write_err(fmt::format("candor: note: {}\n", printable(message)));
}

void install_signal_handlers() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup goes on
}

bool interrupted() {
  return interrupt_flag.load();
}
void clear_interrupt() {
  interrupt_flag.store(false);
}
void catch_hang_ups() {
  struct sigaction action {};
  action.sa_handler = on_hang_up;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, nullptr);
}
bool take_hang_up() {
  return hang_up_flag.exchange(false);
}
EndsOnInterrupt::EndsOnInterrupt() : before_(interrupt_is_final.exchange(true)) {}
EndsOnInterrupt::~EndsOnInterrupt() {
  interrupt_is_final.store(before_);
}

ProgressBar::ProgressBar(std::string label, ProgressUnit unit)
    : label_(std::move(label)),
      unit_(unit),
      on_(is_terminal(STDERR_FILENO)),
      began_(std::chrono::steady_clock::now()),
      last_(began_) {}

ProgressBar::~ProgressBar() {
  finish();
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (!on_ || total == 0 || now - began_ < 1s || (shown_ && now - last_ < 50ms)) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  write_err("\r\x1b[K" + progress_line(label_, done, total, seconds, terminal_columns(STDERR_FILENO) - 1, unit_));
}

void ProgressBar::finish() {
  if (shown_) write_err("\r\x1b[K");
  shown_ = false;
}

std::string format_bytes(uint64_t n_bytes) {
  constexpr const char* kUnits[] = {"bytes", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(n_bytes);
  int unit = 0;
  for (; value >= 1000.0 && unit < 4; ++unit) value /= 1000.0;
  return unit == 0 ? fmt::format("{} bytes", n_bytes)
                   : fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

std::string format_ms(double ms) {
  if (ms < 10) return fmt::format("{:.1f} ms", ms);
  return ms < 1000 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.2f} s", ms / 1000);
}

std::string format_count(int64_t n) {
  std::string digits = fmt::format("{}", n);
  for (size_t at = digits.size(); at > 3 && at - 3 > (n < 0 ? 1u : 0u); at -= 3) digits.insert(at - 3, " ");
  return digits;
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(std::string text, size_t n_columns, std::string_view shown) {
  const size_t n = columns_of(shown);
  text.append(n_columns > n ? n_columns - n : 0, ' ');
  return text;
}

std::string fitted(std::string_view text, size_t n_columns) {
  if (columns_of(text) <= n_columns) return std::string(text);
  const size_t n_kept = n_columns > 3 ? n_columns - 3 : 0;
  size_t end = 0;
  for (size_t n = 0; end < text.size(); ++end) {
    if ((text[end] & 0xC0) != 0x80 && n++ == n_kept) break;
  }
  return std::string(text.substr(0, end)) + std::string("...").substr(0, n_columns);
}

namespace {

// How many bytes of it fit, up to the last space where a word would be broken.
size_t line_end(std::string_view text, size_t n_columns) {
  size_t n = 0, space = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if ((text[at] & 0xC0) == 0x80) continue;
    if (n++ == n_columns) return text[at] == ' ' || space == 0 ? at : space;
    if (text[at] == ' ') space = at;
  }
  return text.size();
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, size_t n_columns) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = std::min(text.find('\n', begin), text.size());
    const std::string shown = printable(text.substr(begin, newline - begin));
    std::string_view rest = shown;
    do {
      const size_t end = line_end(rest, std::max<size_t>(1, n_columns));
      lines.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(rest.size(), end + (end < rest.size() && rest[end] == ' ' ? 1 : 0)));
    } while (!rest.empty());
    begin = newline + 1;
  }
  return lines;
}

size_t terminal_columns(int fd) {
  constexpr size_t kLeast = 40, kUsual = 100, kMost = 500;
  winsize size{};
  size_t n = ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  if (const char* set = std::getenv("COLUMNS"); n == 0 && set != nullptr) n = std::strtoul(set, nullptr, 10);
  return n == 0 ? kUsual : std::clamp(n, kLeast, kMost);
}

std::string printable(std::string_view text) {
  std::string out;
  const std::string valid = to_valid_utf8(text);
  for (const char c : valid) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02X}", byte);
    else
      out += c;
  }
  return out;
}

}  // namespace candor::apps
