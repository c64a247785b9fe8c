#pragma once
// Makes the prompt for fill-in-the-middle: the text before and after a gap, joined with the marks that the vocabulary
// has for this.

#include <string>
#include <vector>

#include "candor/engine.h"
#include "candor/request.h"

namespace candor::serve {

// A file of the surroundings.
struct InfillExtra {
  std::string name;
  std::string text;
};

// What the client calls the parts.
struct InfillNames {
  std::string prefix = "input_prefix";
  std::string suffix = "input_suffix";
  std::string extras = "input_extra";
};

struct InfillTexts {
  std::string prefix{};
  std::string suffix{};
  std::vector<InfillExtra> extras{};  // in order
  InfillNames names{};
};

// What has no room in the context is left out, which the warnings say. The sampling gets the marks at which an answer
// ends. An error where the vocabulary has no such marks.
Result<TokenPrompt> infill_prompt(const Engine& engine, const InfillTexts& texts, SamplingParams& sampling,
                                  std::vector<std::string>& warnings);

}  // namespace candor::serve
