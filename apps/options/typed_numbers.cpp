#include "apps/options/typed_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <unordered_set>

#include "apps/options/prompt_source.h"
#include "apps/terminal/terminal.h"
#include "base/utf8.h"

namespace candor::apps {
namespace {

constexpr size_t kShownBytes = 24;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

Error wrong(std::string_view option, const std::string& what) {
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: {}", option, what));
}

Result<double> parse(std::string_view word, std::string_view option, size_t place) {
  double value = 0;
  const std::string_view digits = word.substr(word.starts_with('+') ? 1 : 0);
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string which = fmt::format("number {}, \"{}\",", place, printable(clipped(word, kShownBytes)));
  if (digits.empty() || end != digits.data() + digits.size() || status == std::errc::invalid_argument)
    return wrong(option, which + " is none; expected a list like 2.0,-1.5,0.3");
  const double most = static_cast<double>(std::numeric_limits<float>::max());
  if (status != std::errc() || value > most || (value < -most && value != -std::numeric_limits<double>::infinity()))
    return wrong(option, which + " is more than a float holds");
  if (std::isnan(value)) return wrong(option, which + " cannot be weighed; expected a finite number, or -inf");
  return value;
}

Result<std::string> text_of(const std::string& value, std::string_view option) {
  if (!value.starts_with('@')) return value;
  return read_text_file(value.substr(1), fmt::format("the file {} of {}", value.substr(1), option));
}

}  // namespace

Result<std::vector<double>> read_numbers(const std::string& value, std::string_view option) {
  CANDOR_ASSIGN(const std::string text, text_of(value, option));
  std::vector<double> numbers;
  bool wants_number = false;  // behind a comma
  for (size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
    } else if (text[at] == ',') {
      if (wants_number || numbers.empty())
        return wrong(option, fmt::format("nothing stands where number {} should", numbers.size() + 1));
      wants_number = true;
      ++at;
    } else {
      size_t end = at;
      while (end < text.size() && text[end] != ',' && !is_space(text[end])) ++end;
      if (numbers.size() == kMostNumbers)
        return wrong(option, fmt::format("more than {} numbers; no vocabulary is so large", kMostNumbers));
      CANDOR_ASSIGN(const double number,
                    parse(std::string_view(text).substr(at, end - at), option, numbers.size() + 1));
      numbers.push_back(number);
      wants_number = false;
      at = end;
    }
  }
  if (numbers.empty()) return wrong(option, "no number in it; expected a list like 2.0,-1.5,0.3");
  if (wants_number) return wrong(option, fmt::format("nothing stands where number {} should", numbers.size() + 1));
  return numbers;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::vector<std::string>> read_labels(const std::string& value, std::string_view option) {
  CANDOR_ASSIGN(std::string text, text_of(value, option));
  std::vector<std::string> labels;
  if (!value.starts_with('@')) labels = split_at_commas(text);
  for (size_t begin = 0; value.starts_with('@') && begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    labels.push_back(text.substr(begin, end - begin));
    if (labels.back().ends_with('\r')) labels.back().pop_back();
    begin = end + 1;
  }
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].empty()) return wrong(option, fmt::format("label {} is empty", i + 1));
    if (!seen.insert(labels[i]).second)
      return wrong(option, fmt::format("\"{}\" stands there twice; expected a name of its own for each number",
                                       printable(clipped(labels[i], kShownBytes))));
  }
  return labels;
}

}  // namespace candor::apps
