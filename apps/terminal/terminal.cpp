#include "apps/terminal/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include "apps/terminal/exit_codes.h"
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

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)),
      on_(is_terminal(STDERR_FILENO)),
      began_(std::chrono::steady_clock::now()),
      last_(began_) {}

ProgressBar::~ProgressBar() {
  finish();
}

void ProgressBar::update(uint64_t done_bytes, uint64_t total_bytes) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (!on_ || total_bytes == 0 || now - began_ < 1s || (shown_ && now - last_ < 50ms)) return;
  last_ = now;
  shown_ = true;
  constexpr int kWidth = 30;
  const double share = static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  const int filled = static_cast<int>(share * kWidth);
  const double seconds = std::chrono::duration<double>(now - began_).count();
  write_err(fmt::format("\r\x1b[K{} [{:=>{}}{:>{}}] {:3.0f} % of {}, {}/s", label_, "", filled, "", kWidth - filled,
                        share * 100, format_bytes(total_bytes),
                        format_bytes(static_cast<uint64_t>(static_cast<double>(done_bytes) / seconds))));
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
