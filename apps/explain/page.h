#pragma once
// A trace as a person reads it: the steps from text to text, with shapes, time and bytes, and how each token was
// chosen.

#include <optional>
#include <string>

#include "apps/explain/inside.h"
#include "apps/explain/tokens.h"
#include "apps/explain/trace.h"
#include "candor/engine.h"

namespace candor::apps {

struct PageWish {
  const SamplingParams& sampling;  // borrowed
  Level level = Level::kFull;
  std::optional<Inside> inside{};  // shown where there is one
};

std::string explain_page(const Engine& engine, const Trace& trace, const PageWish& wish);
// The same, whole.
std::string explain_json(const Engine& engine, const Trace& trace, const PageWish& wish);

}  // namespace candor::apps
