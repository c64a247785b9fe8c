#pragma once
// Lists that somebody types, or keeps in a file (@FILE): numbers apart by commas or space, and names for them.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::apps {

inline constexpr size_t kMostNumbers = 1'000'000;

// option: as messages name it, "--logits". Refused, in one line with the place: what is no number, NaN, what a float
// cannot hold, nothing at all, more than kMostNumbers. "-inf" is a number here.
Result<std::vector<double>> read_numbers(const std::string& value, std::string_view option);
// Names, apart by commas; in a file one a line. Two of the same are refused.
Result<std::vector<std::string>> read_labels(const std::string& value, std::string_view option);
// What stands between commas.
std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace candor::apps
