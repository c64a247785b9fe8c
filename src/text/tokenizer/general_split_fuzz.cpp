// A tokenizer's expressions and a text, both any bytes: lines of expressions up to an empty one, then the text. Refused in
// one line, or cut into words that stand in the text, in order. First byte: what becomes of matches.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_budget.h"
#include "support/memory_model_file.h"
#include "text/tokenizer/general_split.h"

namespace {

constexpr std::array<std::string_view, 5> kBehaviors = {"isolated", "removed", "merged_with_previous",
                                                        "merged_with_next", "contiguous"};
constexpr std::array<std::string_view, 4> kHow = {"", "invert", "bytes", "invert bytes"};

std::vector<std::string> steps_of(std::string_view lines, uint8_t first) {
  std::vector<std::string> steps;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    steps.insert(steps.end(), {std::string(kBehaviors[first % kBehaviors.size()]),
                               std::string(kHow[first / kBehaviors.size() % kHow.size()]),
                               std::string(lines.substr(0, end))});
    lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
  }
  return steps;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const candor::testing::FuzzBudget budget(size);
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t end = input.find("\n\n");
  const std::string_view text = end == std::string_view::npos ? std::string_view() : input.substr(end + 2);
  candor::testing::MemoryModelFile file;
  file.set_strings("tokenizer.candor.splits", steps_of(input.substr(0, end), data[0]));
  const auto split = candor::text::GeneralSplit::from_model_file(file);
  if (!split) {
    CANDOR_CHECK(split.error().message.find('\n') == std::string::npos);
    return 0;
  }
  uint64_t steps = candor::text::GeneralSplit::budget_of(text);
  const auto words = (*split)->words_of(text, steps);
  if (!words) {
    CANDOR_CHECK(words.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const char* at = text.data();
  for (const std::string_view word : *words) {
    CANDOR_CHECK(!word.empty() && word.data() >= at && word.data() + word.size() <= text.data() + text.size());
    at = word.data() + word.size();
  }
  return 0;
}
