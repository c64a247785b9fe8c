#pragma once
// What a progress bar says: how far, how fast, and how long it will yet take at the speed so far.

#include <cstddef>
#include <cstdint>
#include <string>

namespace candor::apps {

enum class ProgressUnit : uint8_t { kBytes, kTokens };

// "writing [====      ]  40 % of 2.0 GB, 500 MB/s, 2 s left", the bar and then the label shortened until it fits
// into so many columns. No time left is told while nothing is done. REQUIRES: total > 0, seconds > 0.
std::string progress_line(const std::string& label, uint64_t done, uint64_t total, double seconds, size_t n_columns,
                          ProgressUnit unit = ProgressUnit::kBytes);
// "8 s", "2 min 05 s", "1 h 20 min"; rounded up.
std::string time_left(double seconds);

}  // namespace candor::apps
