#pragma once
// Records what each stage of the sampler left, for a request that wants to see it. One for each picker; engine thread.

#include <string_view>

#include "candor/event.h"
#include "sample/candidates.h"
#include "sample/chain.h"

namespace candor::engine {

class Explainer final : public sample::ChainObserver {
 public:
  // Where the next choice is recorded. Borrowed until the next call.
  void begin(TokenExplanation& explanation) { explanation_ = &explanation; }
  void on_stage(std::string_view name, sample::Candidates& candidates) override;

 private:
  TokenExplanation* explanation_ = nullptr;
};

}  // namespace candor::engine
