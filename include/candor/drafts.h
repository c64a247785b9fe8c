#pragma once
// Who proposes tokens ahead, which one step of the model verifies together, and what came of it. Drafts change no
// answer, only how many tokens a step gives. Plain values: any thread.

#include <array>
#include <cstddef>
#include <cstdint>

namespace candor {

enum class DraftSource : std::uint8_t {
  kNgram,       // what followed the newest tokens where they stood before, in prompt and output
  kModel,       // a smaller model of the same vocabulary
  kMtp,         // a head for multi-token prediction
  kEagle,       // an EAGLE-3 head
  kPrediction,  // the caller: Request::predicted
};
inline constexpr std::size_t kDraftSources = 5;

// "ngram", "model", "mtp", "eagle", "prediction".
const char* to_string(DraftSource source);

// What one source drafted. Times by the costs in effect (StepCosts); those of predictions are not counted.
struct DraftUsage {
  std::int64_t n_steps = 0;          // in which it drafted, counted for each sequence
  std::int64_t drafted_tokens = 0;   // drafts that were verified
  std::int64_t accepted_tokens = 0;  // of them, those that equal the tokens drawn
  double plain_ms = 0;               // these steps without drafts
  double added_ms = 0;               // what its drafts added to them: to make, to verify, for all that waited
  double saved_ms = 0;               // steps that its accepted drafts stand for

  // Tokens for the time, as a ratio to those without drafts; 0 where no time was counted.
  double gain() const { return plain_ms > 0 ? (plain_ms + saved_ms) / (plain_ms + added_ms) : 0.0; }
  // Drafts that a step accepted, on average.
  double accepted_length() const {
    return n_steps > 0 ? static_cast<double>(accepted_tokens) / static_cast<double>(n_steps) : 0.0;
  }
  DraftUsage& operator+=(const DraftUsage& other) {
    n_steps += other.n_steps;
    drafted_tokens += other.drafted_tokens;
    accepted_tokens += other.accepted_tokens;
    plain_ms += other.plain_ms;
    added_ms += other.added_ms;
    saved_ms += other.saved_ms;
    return *this;
  }
};

// By DraftSource.
using DraftUsages = std::array<DraftUsage, kDraftSources>;

}  // namespace candor
