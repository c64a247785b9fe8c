#pragma once
// How a vocabulary cuts text into words, where its expressions are none of those that split_rule.h has scanners for:
// they run in an engine for regular expressions (bridge/, Oniguruma's syntax), whose work and memory are linear in the
// text. From a model file: "tokenizer.candor.splits", three strings a step, each of which cuts the pieces that the one
// before left: what becomes of a match (isolated, removed, merged_with_previous, merged_with_next, contiguous), "invert",
// "bytes" (this step and those behind it see the bytes as GPT-2's alphabet writes them), "invert bytes" or "", and the
// expression. Immutable; any thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"

struct candor_splitter;

namespace candor::text {

class GeneralSplit {
 public:
  // Nothing where the file has no such key. Refuses, by name, expressions that the engine does not know.
  static Result<std::optional<GeneralSplit>> from_model_file(const formats::ModelFile& file);

  // Steps of the engine that a text may take with all that stands between its special tokens: linear in its bytes.
  static uint64_t budget_of(std::string_view text) { return 1'000'000 + 200 * static_cast<uint64_t>(text.size()); }
  // The words of a text of any bytes, in order; what a step removes is in none. Takes what it costs from the budget;
  // refuses a text that needs more.
  Result<std::vector<std::string_view>> words_of(std::string_view text, uint64_t& budget) const;
  size_t n_steps() const { return n_steps_; }

 private:
  struct Free {
    void operator()(candor_splitter* splitter) const;
  };
  GeneralSplit(candor_splitter* splitter, size_t n_steps) : splitter_(splitter), n_steps_(n_steps) {}

  std::unique_ptr<candor_splitter, Free> splitter_;
  size_t n_steps_;
};

}  // namespace candor::text
