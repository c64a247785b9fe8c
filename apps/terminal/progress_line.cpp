#include "apps/terminal/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "apps/terminal/terminal.h"

namespace candor::apps {
namespace {

constexpr size_t kWidth = 30;

std::string bar_of(double share, size_t width) {
  const auto n_filled = static_cast<size_t>(share * static_cast<double>(width));
  return " [" + std::string(n_filled, '=') + std::string(width - n_filled, ' ') + "]";
}

std::string amount_of(uint64_t n, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? format_bytes(n) : format_count(static_cast<int64_t>(n)) + " tokens";
}

std::string rate_of(uint64_t n, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? format_bytes(n) : format_count(static_cast<int64_t>(n)) + " tok";
}

}  // namespace

std::string time_left(double seconds) {
  constexpr double kMost = 99 * 3600;
  const auto n = static_cast<int64_t>(std::ceil(std::min(seconds, kMost)));
  if (n < 60) return fmt::format("{} s", n);
  if (n < 3600) return fmt::format("{} min {:02} s", n / 60, n % 60);
  return fmt::format("{} h {:02} min", n / 3600, n % 3600 / 60);
}

std::string progress_line(const std::string& label, uint64_t done, uint64_t total, double seconds, size_t n_columns,
                          ProgressUnit unit) {
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto rate = static_cast<uint64_t>(static_cast<double>(done) / seconds);
  std::string figures = fmt::format(" {:3.0f} % of {}, {}/s", share * 100, amount_of(total, unit), rate_of(rate, unit));
  if (share > 0) figures += fmt::format(", {} left", time_left(seconds * (1 - share) / share));
  const size_t n_beside = columns_of(label) + columns_of(figures) + std::string_view(" []").size();
  const size_t width = n_columns > n_beside ? std::min(kWidth, n_columns - n_beside) : 0;
  if (width > 0) return label + bar_of(share, width) + figures;
  const size_t n_left = n_columns > columns_of(figures) ? n_columns - columns_of(figures) : 0;
  return fitted(fitted(label, n_left) + figures, n_columns);
}

}  // namespace candor::apps
