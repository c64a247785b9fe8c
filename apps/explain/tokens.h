#pragma once
// How each token of an answer came about, as a person reads it: steps 6 to 8 of the page, in brief or in full.

#include <cstdint>
#include <span>
#include <string>

#include "candor/engine.h"

namespace candor::apps {

enum class Level : uint8_t { kBrief, kFull };

struct TokenPage {
  const SamplingParams& sampling;  // borrowed
  uint64_t seed = 0;
  Level level = Level::kFull;
  int64_t first = 1;  // the number of the first token of each answer that is shown
};

// events: with explanations and logprobs; those without explanations are passed over.
std::string tokens_text(const Engine& engine, std::span<const TokenEvent> events, const TokenPage& page);

}  // namespace candor::apps
