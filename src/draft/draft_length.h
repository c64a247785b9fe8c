#pragma once
// How many guesses are worth checking: the number with the most tokens for the time, from the share of guesses that
// came true lately and from what guesses cost. 0 where guessing does not pay; then a few single guesses are tried now
// and again, ever more rarely.
//
// Every guess is paid for beforehand, out of what earlier ones have gained and of a hundredth of the time that plain
// decoding would have taken so far: by the costs given, no text takes more than 1 % longer than without guesses, at no
// moment, whichever of them come true. One for each sequence. Nothing here changes an answer: it only decides how many
// tokens one step gives.

#include <array>
#include <cstdint>

namespace candor::draft {

inline constexpr int32_t kMaxGuesses = 15;

// In any one unit of time.
struct GuessCosts {
  double plain = 0.0;                              // a step without guesses
  std::array<double, kMaxGuesses + 1> extra = {};  // what n guesses add to it, making them included; does not fall
};

class DraftLength {
 public:
  // At most `most`.
  int32_t choose(int32_t most, const GuessCosts& costs) const;
  // Before every step: what it takes without guesses, and what its guesses add.
  void pay(double plain, double extra);
  // After it: n_guessed were checked (0: none were), the first n_right of them came true.
  void record(int32_t n_guessed, int32_t n_right);

  double acceptance() const { return n_right_ / n_tried_; }

 private:
  // Decaying counts; the start is an assumption that two or three steps correct.
  double n_right_ = 1.4;
  double n_tried_ = 2.0;
  double budget_ = 0.0;    // what guesses may cost from here on
  double plain_ = 0.0;     // of the step in the making
  int32_t n_idle_ = 0;     // steps since the last guess
  int32_t patience_ = 32;  // steps until the next trial
  int32_t n_trial_ = 0;    // guesses that are left of one
};

}  // namespace candor::draft
