#include "text/tokenizer/general_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "candor_bridge.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {
namespace {

constexpr std::string_view kSplitsKey = "tokenizer.candor.splits";

struct NamedBehavior {
  std::string_view name;
  candor_split_behavior behavior;
};
constexpr NamedBehavior kBehaviors[] = {{"isolated", CANDOR_SPLIT_ISOLATED},
                                        {"removed", CANDOR_SPLIT_REMOVED},
                                        {"merged_with_previous", CANDOR_SPLIT_MERGED_WITH_PREVIOUS},
                                        {"merged_with_next", CANDOR_SPLIT_MERGED_WITH_NEXT},
                                        {"contiguous", CANDOR_SPLIT_CONTIGUOUS}};

candor_bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Frees what the engine said.
Error refused(candor_error& error) {
  const std::string message = error.message.data == nullptr ? "" : std::string(error.message.data, error.message.size);
  const ErrorKind kind = error.status == CANDOR_UNSUPPORTED ? ErrorKind::kUnsupported
                         : error.status == CANDOR_INTERNAL  ? ErrorKind::kInternal
                                                            : ErrorKind::kInvalidInput;
  candor_error_clear(&error);
  return {kind, fmt::format("{}: {}", kSplitsKey, message)};
}

Result<candor_split_step> step_of(const std::vector<std::string_view>& strings, size_t i) {
  const auto* known = std::ranges::find(kBehaviors, strings[i], &NamedBehavior::name);
  const std::string_view how = strings[i + 1];
  const bool inverts = how.starts_with("invert");
  const bool over_bytes = how.ends_with("bytes");
  const bool is_plain = how.empty() || how == "invert" || how == "bytes" || how == "invert bytes";
  const bool is_known = known != std::end(kBehaviors) && is_plain;
  if (!is_known) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}[{}]: {} with {} is not known; convert the model again", kSplitsKey, i,
                            quoted_piece(strings[i]), quoted_piece(how)));
  }
  return candor_split_step{bytes_of(strings[i + 2]), known->behavior, inverts, over_bytes};
}

}  // namespace

void GeneralSplit::Free::operator()(candor_splitter* splitter) const {
  candor_splitter_free(splitter);
}

Result<std::optional<GeneralSplit>> GeneralSplit::from_model_file(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const auto* strings, formats::meta_strings(file, kSplitsKey));
  if (strings == nullptr) return std::optional<GeneralSplit>();
  if (strings->size() % 3 != 0) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {} strings, expected three a step; convert the model again",
                                                      kSplitsKey, strings->size()));
  }
  std::vector<candor_split_step> steps;
  for (size_t i = 0; i < strings->size(); i += 3) {
    CANDOR_ASSIGN(const candor_split_step step, step_of(*strings, i));
    steps.push_back(step);
  }
  candor_splitter* splitter = nullptr;
  candor_error error{};
  if (candor_splitter_create(steps.data(), steps.size(), &splitter, &error) != CANDOR_OK) return refused(error);
  return std::optional<GeneralSplit>(GeneralSplit(splitter, steps.size()));
}

Result<std::vector<std::string_view>> GeneralSplit::words_of(std::string_view text, uint64_t& budget) const {
  candor_spans spans{};
  candor_error error{};
  if (candor_splitter_split(splitter_.get(), bytes_of(text), &budget, &spans, &error) != CANDOR_OK) return refused(error);
  std::vector<std::string_view> words;
  words.reserve(spans.size);
  for (size_t i = 0; i < spans.size; ++i) {
    words.push_back(text.substr(spans.ends[2 * i], spans.ends[2 * i + 1] - spans.ends[2 * i]));
  }
  candor_spans_free(&spans);
  return words;
}

}  // namespace candor::text
