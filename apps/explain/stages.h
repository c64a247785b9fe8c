#pragma once
// The stages between logits and a token, as a person reads them and as JSON: what each left, cut and changed.

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/terminal/terminal.h"
#include "candor/event.h"
#include "candor/request.h"

namespace candor::apps {

inline constexpr size_t kTokenColumns = 16;  // of a token in a table

using TokenName = std::function<std::string(TokenId)>;

// Both borrowed.
struct StageWords {
  const TokenName& name;           // of a token, as it is shown
  const SamplingParams& sampling;  // what the stages were asked for
};

// A paragraph for each stage that did something; those in a row that changed nothing share a line.
std::string stages_text(const std::vector<StageView>& stages, TokenId chosen, const StageWords& words,
                        const Style& style);
nlohmann::ordered_json stages_json(const std::vector<StageView>& stages, const TokenName& piece);

// "top_k 40"; the name alone where no one number says what the stage does.
std::string stage_title(const std::string& name, const SamplingParams& sampling);
// Neither candidates nor logits are other ones behind it.
bool changed_nothing(const StageView& stage, const StageView& before);

}  // namespace candor::apps
